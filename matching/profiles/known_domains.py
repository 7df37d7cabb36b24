"""Tables behind `identity`: public suffixes, open mail providers, affiliations that name no institution."""

from __future__ import annotations

__all__ = ["FREE_MAIL", "PLACEHOLDER_AFFILIATIONS", "PUBLIC_SUFFIXES", "SUFFIX_LABELS"]

SUFFIX_LABELS: frozenset[str] = frozenset(
    ("ac", "co", "com", "edu", "gob", "gov", "govt", "mil", "net", "nic", "org", "sch")
)
"""Second-level labels that make a public suffix under a two-letter top-level domain: ac.uk, edu.au, co.jp, com.br."""

_FURTHER_SUFFIXES = """
    ad.jp ed.jp go.jp gr.jp lg.jp ne.jp or.jp go.kr ne.kr or.kr pe.kr re.kr go.th in.th mi.th or.th go.id or.id
    web.id ernet.in firm.in gen.in ind.in res.in ltd.uk me.uk nhs.uk plc.uk police.uk gv.at or.at asso.fr gouv.fr
    cri.nz geek.nz school.nz asn.au id.au idf.il k12.il muni.il bel.tr k12.tr go.ke or.ke sc.ke go.tz or.tz go.ug
    or.ug ab.ca bc.ca gc.ca mb.ca nb.ca nf.ca nl.ca ns.ca on.ca pe.ca qc.ca sk.ca law.za nom.za idv.tw gouv.ci
    gouv.sn eu.org uk.com us.com github.io gitlab.io
"""
PUBLIC_SUFFIXES: frozenset[str] = frozenset(_FURTHER_SUFFIXES.split())
"""Public suffixes of two labels that SUFFIX_LABELS does not cover."""

_BRANDS = "gmx hotmail live outlook yahoo yandex"
_BRAND_SUFFIXES = """
    com ar at be bg ca ch cl cn co.id co.il co.in co.jp co.kr co.nz co.th co.uk co.za com.ar com.au com.br com.cn
    com.co com.hk com.mx com.my com.pe com.ph com.sg com.tr com.tw com.ve com.vn cz de dk ee es fi fr gr hk hu ie in
    it jp lt lv my net nl no org ph pl pt ro ru se sg sk ua us
"""
_PROVIDERS = """
    gmail.com googlemail.com msn.com passport.com ymail.com rocketmail.com myyahoo.com aol.com aim.com icloud.com
    me.com mac.com protonmail.com protonmail.ch proton.me pm.me tutanota.com tutanota.de tuta.io tuta.com hey.com
    fastmail.com fastmail.fm zoho.com zohomail.com zohomail.eu hushmail.com mail.com email.com usa.com posteo.de
    posteo.net mailbox.org web.de t-online.de freenet.de arcor.de online.de 1und1.de orange.fr wanadoo.fr free.fr
    laposte.net sfr.fr libero.it virgilio.it alice.it tin.it tiscali.it bluewin.ch telenet.be skynet.be ziggo.nl
    xs4all.nl kpnmail.nl btinternet.com sky.com virginmedia.com ntlworld.com seznam.cz centrum.cz email.cz wp.pl
    o2.pl onet.pl interia.pl op.pl abv.bg mail.bg ukr.net i.ua mail.ru inbox.ru list.ru bk.ru internet.ru rambler.ru
    ya.ru qq.com foxmail.com 163.com 126.com yeah.net 139.com 189.cn sina.com sina.cn sohu.com aliyun.com 21cn.com
    tom.com naver.com hanmail.net daum.net kakao.com nate.com docomo.ne.jp ezweb.ne.jp softbank.ne.jp nifty.com
    rediffmail.com sify.com bol.com.br uol.com.br terra.com.br ig.com.br comcast.net verizon.net att.net
    sbcglobal.net bellsouth.net cox.net charter.net earthlink.net rogers.com sympatico.ca shaw.ca telus.net
    bigpond.com optusnet.com.au xtra.co.nz mailinator.com duck.com
"""
FREE_MAIL: frozenset[str] = frozenset(
    [f"{brand}.{suffix}" for brand in _BRANDS.split() for suffix in _BRAND_SUFFIXES.split()] + _PROVIDERS.split()
)
"""Domains of mail providers open to anyone: sharing one says nothing about an employer."""

_PLACEHOLDERS = """
    none | no | nil | null | nan | n/a | na | n.a | not applicable | not available | not provided | not specified
    no affiliation | no institution | without affiliation | unaffiliated | unaffiliated researcher | non-affiliated
    independent | independent researcher | independent scholar | independent scientist | independent consultant
    independent contractor | individual | individual researcher | private | personal | freelance | freelancer
    freelance researcher | self | self employed | self-employed | consultant | student | phd student | graduate student
    undergraduate student | professor | researcher | research scientist | postdoc | retired | emeritus | unemployed
    unknown | anonymous | other | others | tbd | tba | todo | test | various | home | university | company | industry
    academia | institute | x | xx | xxx
"""
PLACEHOLDER_AFFILIATIONS: frozenset[str] = frozenset(
    ["", *(entry.strip() for line in _PLACEHOLDERS.splitlines() for entry in line.split("|"))]
)
"""Folded affiliations, without outer punctuation, that name no institution."""
