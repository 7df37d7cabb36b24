"""Pages for people: server-rendered, one local style sheet, no scripts, nothing from outside."""
