"""PTX text -> Module: functions, instructions with their lines, registers, labels, variables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import PtxUnsupported

WIDTHS = {
    "pred": 1,
    "b8": 8,
    "u8": 8,
    "s8": 8,
    "b16": 16,
    "u16": 16,
    "s16": 16,
    "f16": 16,
    "bf16": 16,
    "b32": 32,
    "u32": 32,
    "s32": 32,
    "f32": 32,
    "f16x2": 32,
    "bf16x2": 32,
    "b64": 64,
    "u64": 64,
    "s64": 64,
    "f64": 64,
    "f32x2": 64,
    "b128": 128,
}


@dataclass(slots=True)
class Reg:
    index: int
    width: int
    name: str


@dataclass(slots=True)
class Var:
    """A .shared/.global/.const/.local/.param variable; `size` in bytes, None if extern."""

    space: str
    name: str
    size: int | None
    align: int
    init: bytes = b""
    offset: int = 0  # filled in when addresses are laid out
    pointers: list = field(default_factory=list)  # (byte position, symbol) to patch


class Scope:
    """Names of one { } block; labels and registers of inner blocks do not leak out."""

    def __init__(self, parent: Scope | None = None):
        self.parent, self.names, self.labels = parent, {}, {}
        self.tables = {}  # label of a .branchtargets list -> its labels

    def find(self, name: str):
        scope = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def label(self, name: str):
        scope = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None

    def table(self, name: str):
        scope = self
        while scope is not None:
            if name in scope.tables:
                return scope.tables[name]
            scope = scope.parent
        return None


@dataclass(slots=True)
class Inst:
    op: str
    mods: list
    operands: list
    pred: str | None
    neg: bool
    line: int
    loc: tuple | None
    text: str
    scope: Scope
    used_bytes: int | None = None  # from .pragma "used_bytes_mask"


@dataclass
class Function:
    name: str
    entry: bool
    line: int
    params: list
    rets: list
    directives: dict
    scope: Scope
    start: int = 0
    end: int = 0


@dataclass
class Module:
    version: str = ""
    target: str = ""
    functions: dict = field(default_factory=dict)
    externs: dict = field(default_factory=dict)  # name -> (nrets, nparams)
    code: list = field(default_factory=list)  # Inst, all functions one after another
    regs: list = field(default_factory=list)  # Reg by index
    variables: dict = field(default_factory=dict)  # module scope, by name
    locals: list = field(default_factory=list)  # .local/.shared/.param declared in bodies
    files: dict = field(default_factory=dict)
    scope: Scope = field(default_factory=Scope)


_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
_TOKEN = re.compile(
    r"\s*(?:(?P<label>[\w$%]+)\s*:(?!:)|(?P<open>\{)|(?P<close>\})"
    r"|(?P<line>\.(?:loc|file)\b[^\n]*)|(?P<stmt>[^;]+?)\s*;)"
)
_OPERAND = re.compile(
    r"\{[^}]*\}\s*\|\s*[\w%$]+|\{[^}]*\}|\[(?:[^\[\]{}]|\{[^}]*\})*\]|\([^)]*\)"
    r"|[^,\s](?:[^,]*[^,\s])?"
)
_INST = re.compile(r"(?:@(!?)\s*([\w%$]+)\s+)?([a-z]\w*)((?:(?:\.|::)[\w:]+)*)\s*(.*)", re.S)
_REG = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.S)
_VAR = re.compile(
    r"((?:\.\w+\s+)*?)\.(shared|global|const|local|param)\s+"
    r"((?:\.\w+(?:\s+\d+)?\s+)*)([\w$%.]+)\s*(\[[^\]]*\])?\s*(?:=\s*(.*))?$",
    re.S,
)
_USED = re.compile(r'"used_bytes_mask\s+(\w+)"')


def _blank(match):
    text = match.group(0)
    return text if text[0] == '"' else "\n" * text.count("\n") or " "


def _matching(text: str, pos: int, pair: str) -> int:
    """Index of the bracket that closes text[pos]; strings skipped."""
    depth = 0
    for m in re.compile(r'"(?:[^"\\\n]|\\.)*"|[' + re.escape(pair) + "]").finditer(text, pos):
        ch = m.group(0)
        if ch == pair[0]:
            depth += 1
        elif ch == pair[1]:
            depth -= 1
            if depth == 0:
                return m.start()
    raise PtxUnsupported(f"PTX line {text.count(chr(10), 0, pos) + 1}: '{pair[0]}' is never closed")


def _variable(text: str, line: int) -> Var:
    m = _VAR.match(text)
    if not m:
        raise PtxUnsupported(f"PTX line {line}: unknown declaration: {text}")
    linkage, space, attrs, name, dims, init = m.groups()
    unknown = set(re.findall(r"\.(\w+)", linkage)) - {"extern", "visible", "weak", "common"}
    align, elem = None, None
    words = re.findall(r"\.(\w+)(?:\s+(\d+))?", attrs)
    for word, number in words:
        if word == "align":
            align = int(number)
        elif word in WIDTHS:
            elem = WIDTHS[word] // 8
        elif word in ("ptr", "global", "shared", "const", "local"):
            continue  # attributes of a pointer parameter: no effect on its size
        else:
            unknown.add(word)
    if unknown or elem is None:
        raise PtxUnsupported(f"PTX line {line}: unknown declaration: {text}")
    if ".ptr" in attrs:
        align = None  # it speaks of the pointee
    size = elem
    if dims is not None:
        inner = dims[1:-1].strip()
        size = None if inner == "" else elem * int(inner, 0)
    var = Var(space, name, size, align or elem)
    if init:
        init = init.strip()
        items = [i.strip() for i in init.strip("{}").split(",")] if init[0] == "{" else [init]
        data = bytearray()
        for item in items:
            if not item:
                continue
            if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", item):
                data += (int(item.rstrip("U"), 0) % (1 << 8 * elem)).to_bytes(elem, "little")
            elif re.fullmatch(r"0[fFdD][0-9a-fA-F]+", item):
                data += int(item[2:], 16).to_bytes(elem, "little")
            elif elem == 8:
                var.pointers.append((len(data), re.sub(r"^generic\((.*)\)$", r"\1", item)))
                data += bytes(8)
            else:
                raise PtxUnsupported(f"PTX line {line}: unknown initialiser '{item}': {text}")
        if size is None:
            var.size = len(data)
        var.init = bytes(data)
    return var


def _declare_regs(module: Module, scope: Scope, kind: str, names: str, line: int) -> None:
    if kind not in WIDTHS:
        raise PtxUnsupported(f"PTX line {line}: unknown register type .{kind}")
    width = WIDTHS[kind]
    for item in names.split(","):
        item = item.strip()
        m = re.fullmatch(r"([\w%$]+)<(\d+)>", item)
        for name in [f"{m[1]}{i}" for i in range(int(m[2]))] if m else [item]:
            reg = Reg(len(module.regs), width, name)
            module.regs.append(reg)
            scope.names[name] = reg


def _instruction(text: str, line: int, loc, scope: Scope, used) -> Inst:
    m = _INST.fullmatch(text)
    if not m:
        raise PtxUnsupported(f"PTX line {line}: cannot read the instruction: {text}")
    neg, pred, op, mods, rest = m.groups()
    if "{" in rest or "[" in rest or "(" in rest:
        operands = _OPERAND.findall(rest)
    else:
        operands = [o.strip() for o in rest.split(",")] if rest else []
    return Inst(
        op,
        mods.split(".")[1:] if mods else [],
        operands,
        pred,
        neg == "!",
        line,
        loc,
        " ".join(text.split()),
        scope,
        used,
    )


def _body(module: Module, fn: Function, text: str, start: int, end: int, line: int) -> None:
    scope, loc, used, pos, counted = fn.scope, None, None, start, start
    label = None
    code = module.code
    fn.start = len(code)
    match = _TOKEN.match
    while True:
        m = match(text, pos, end)
        if m is None:
            rest = text[pos:end].strip()
            if rest:
                raise PtxUnsupported(
                    f"PTX line {line + text.count(chr(10), counted, pos)}: cannot read: {rest[:80]}"
                )
            break
        kind = m.lastgroup
        at = m.start(kind)
        line += text.count("\n", counted, at)
        counted = at
        pos = m.end()
        if kind == "stmt":
            stmt = m.group("stmt")
            if stmt[0] != ".":
                code.append(_instruction(stmt, line, loc, scope, used))
                used = None
            elif stmt.startswith(".reg"):
                r = _REG.fullmatch(stmt)
                if not r:
                    raise PtxUnsupported(f"PTX line {line}: unknown declaration: {stmt}")
                _declare_regs(module, scope, r[1], r[2], line)
            elif stmt.startswith(".pragma"):
                u = _USED.search(stmt)
                if u:
                    used = int(u[1], 0)
                elif '"nounroll"' not in stmt:
                    raise PtxUnsupported(f"PTX line {line}: unknown pragma: {stmt}")
            elif stmt.startswith(".branchtargets"):
                if scope.labels.pop(label, None) is None:
                    raise PtxUnsupported(f"PTX line {line}: .branchtargets without a label: {stmt}")
                scope.tables[label] = [t.strip() for t in stmt.split(None, 1)[1].split(",")]
            else:
                var = _variable(stmt, line)
                scope.names[var.name] = var
                module.locals.append(var)
        elif kind == "line":
            words = m.group("line").split()
            if words[0] == ".loc":
                loc = tuple(int(w.rstrip(",")) for w in words[1:4])
            else:
                module.files[int(words[1])] = m.group("line").split('"')[1]
        elif kind == "label":
            label = m.group("label")
            scope.labels[label] = len(code)
        elif kind == "open":
            scope = Scope(scope)
        else:
            if scope is fn.scope:
                raise PtxUnsupported(f"PTX line {line}: unbalanced '}}'")
            scope = scope.parent
    if fn.start == len(code) or code[-1].op not in ("ret", "exit") or code[-1].pred:
        code.append(_instruction("ret", line, loc, fn.scope, None))  # PTX: the end returns
    fn.end = len(code)


_DIRECTIVE = re.compile(
    r"\s*\.(reqntid|maxntid|minnctapersm|maxnreg|reqnctapercluster|"
    r"explicitcluster|maxclusterrank|noreturn|blocksareclusters)\b"
    r"([\s\d,]*)"
)
_HEAD = re.compile(r"\s*((?:\.(?:visible|extern|weak|entry|func|noreturn)\s*)*)")


def parse(ptx: str) -> Module:
    """Parses a PTX module. Raises PtxUnsupported (with the line) on anything unknown."""
    text = _COMMENT.sub(_blank, ptx)
    module = Module()
    pos = 0
    skip = re.compile(r"\s*")

    def line_at(p):
        return text.count("\n", 0, p) + 1

    while True:
        pos = skip.match(text, pos).end()
        if pos >= len(text):
            break
        line = line_at(pos)
        eol = text.find("\n", pos)
        eol = len(text) if eol < 0 else eol
        first = text[pos:eol]
        word = first.split(None, 1)[0]
        if word in (".version", ".target", ".address_size"):
            value = first.split(None, 1)[1].strip()
            if word == ".version":
                module.version = value
            elif word == ".target":
                module.target = value
            elif value != "64":
                raise PtxUnsupported(f"PTX line {line}: only .address_size 64 is known: {first}")
            pos = eol
        elif word == ".file":
            module.files[int(first.split()[1])] = first.split('"')[1]
            pos = eol
        elif word == ".section":
            pos = _matching(text, text.index("{", pos), "{}") + 1
        elif word == ".pragma":
            raise PtxUnsupported(f"PTX line {line}: unknown module pragma: {first}")
        elif re.match(r"(\.(visible|extern|weak)\s+)*\.(entry|func)\b", first):
            pos = _function(module, text, pos, line)
        elif re.match(r"(\.\w+\s+)*\.(shared|global|const)\b", first):
            end = text.index(";", pos)
            var = _variable(text[pos:end].strip(), line)
            module.variables[var.name] = var
            module.scope.names[var.name] = var
            pos = end + 1
        else:
            raise PtxUnsupported(f"PTX line {line}: unknown directive: {first.strip()}")
    return module


def _params(text: str, line: int) -> list:
    return [_variable(p.strip(), line) for p in text.split(",") if p.strip()]


def _function(module: Module, text: str, pos: int, line: int) -> int:
    head = _HEAD.match(text, pos)
    words = head.group(1).split(".")
    words = [w.strip() for w in words if w.strip()]
    entry, extern = "entry" in words, "extern" in words
    pos = head.end()
    rets = []
    if text[pos] == "(":
        close = _matching(text, pos, "()")
        rets = _params(text[pos + 1 : close], line)
        pos = close + 1
    m = re.compile(r"\s*([\w$]+)\s*").match(text, pos)
    name, pos = m.group(1), m.end()
    params = []
    if pos < len(text) and text[pos] == "(":
        close = _matching(text, pos, "()")
        params = _params(text[pos + 1 : close], line)
        pos = close + 1
    directives = {}
    while True:
        d = _DIRECTIVE.match(text, pos)
        if not d:
            break
        directives[d.group(1)] = [int(v) for v in d.group(2).replace(",", " ").split()]
        pos = d.end()
    pos = re.compile(r"\s*").match(text, pos).end()
    if text[pos] == ";":
        module.externs.setdefault(name, (len(rets), len(params)))
        return pos + 1
    if text[pos] != "{" or extern:
        raise PtxUnsupported(
            f"PTX line {line}: unknown directive before the body of {name}: "
            f"{text[pos : pos + 40].splitlines()[0]}"
        )
    close = _matching(text, pos, "{}")
    fn = Function(name, entry, line, params, rets, directives, Scope(module.scope))
    for var in params + rets:
        fn.scope.names[var.name] = var
        if not entry:
            module.locals.append(var)
    module.functions[name] = fn
    _body(module, fn, text, pos + 1, close, text.count("\n", 0, pos + 1) + 1)
    return close + 1
