"""What the commands print, one file each where it is more than a few lines."""
