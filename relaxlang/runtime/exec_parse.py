"""The text form of executables, read back (the form is described in `exec_text`)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, NoReturn

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import dtype
from relaxlang.base.source import Source, Span
from relaxlang.runtime.executable import (
    MAX_CONSTANT_DEPTH,
    VM,
    VOID,
    Arg,
    Call,
    Constant,
    Declaration,
    Executable,
    Func,
    Function,
    Goto,
    If,
    Immediate,
    Instruction,
    KernelFunction,
    ObjectCode,
    PackedFunction,
    Register,
    Ret,
    VMFunction,
)
from relaxlang.runtime.kernel_signature import DIM_OPS, MAX_DIM_DEPTH, BufferParam, Dim, KernelSignature, ScalarParam
from relaxlang.runtime.ndarray import ShapeTuple, empty, numpy_dtype

_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\n]+|\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<float>-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+))
    |(?P<register>%(?:\d+|void|vm)\b)
    |(?P<immediate>i-?\d+\b)
    |(?P<int>-?\d+)
    |(?P<name>[A-Za-z_][\w.$]*)
    |(?P<sign>//|[@()\[\],:;=?*+%-])""",
    re.VERBOSE,
)
_MAX_DIGITS = 40


def parse_text(text: str, filename: str = "<string>") -> Executable:
    """The executable that `text` describes; RLX6013 with the place for text that is none, RLX6014 for code that
    refers to what does not exist."""
    return _Parser(Source(filename, text)).executable()


class _Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens: list[tuple[str, str, int]] = []  # kind, text, offset
        self.at = 0
        self.functions: list[tuple[str, Any]] = []
        self.instructions: list[Instruction] = []
        self.pending: list[tuple[int, Register, str, list[tuple[str, Any]], int]] = []
        self._tokenize()

    # Tokens

    def _tokenize(self) -> None:
        text, at = self.source.text, 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self._fail(f"unexpected character {text[at]!r}", at)
            kind = match.lastgroup or ""
            if kind != "skip":
                self.tokens.append((kind, match[0], at))
            at = match.end()
        self.tokens.append(("end", "", len(text)))

    def _fail(self, message: str, offset: int | None = None) -> NoReturn:
        start = self.tokens[self.at][2] if offset is None else offset
        fail("RLX6013", message, Span(self.source, start, min(start + 1, len(self.source.text))))

    def _take(self, kind: str, what: str) -> str:
        found, text, _ = self.tokens[self.at]
        if found != kind:
            self._fail(f"expected {what}, found {text!r}" if text else f"expected {what}, found the end of the text")
        self.at += 1
        return text

    def _sign(self, sign: str) -> None:
        if not self._maybe(sign):
            self._take("", f"`{sign}`")

    def _maybe(self, text: str) -> bool:
        kind, found, _ = self.tokens[self.at]
        if found != text or kind == "string":
            return False
        self.at += 1
        return True

    def _int(self) -> int:
        text = self._take("int", "a whole number")
        if len(text) > _MAX_DIGITS:
            self._fail("a number with too many digits")
        return int(text)

    def _string(self) -> str:
        token = self._take("string", "a string")
        try:
            value = json.loads(token)
        except ValueError:
            self.at -= 1
            self._fail("a string with a wrong escape sequence")
        return str(value)

    def _name(self) -> str:
        return self._string() if self.tokens[self.at][0] == "string" else self._take("name", "a name")

    def _list(self, close: str, item: Any) -> list[Any]:
        """Items up to `close`, separated by commas, one more comma allowed."""
        items = []
        while not self._maybe(close):
            items.append(item())
            if not self._maybe(","):
                self._sign(close)
                break
        return items

    # The whole

    def executable(self) -> Executable:
        constants: list[Any] = []
        objects: list[ObjectCode] = []
        while self.tokens[self.at][0] != "end":
            if self._maybe("@"):
                self._function()
            elif self._maybe("c"):
                self._sign("[")
                if self._int() != len(constants):
                    self.at -= 1
                    self._fail(f"expected the constant c[{len(constants)}]")
                self._sign("]")
                self._sign("=")
                constants.append(self._constant(0))
            elif self._maybe("object"):
                triple, cpu, features = self._string(), self._string(), self._string()
                objects.append(ObjectCode(self._base64(), triple, cpu, features))
            else:
                self._fail(f"expected a function, a constant or an object, found {self.tokens[self.at][1]!r}")
        self._resolve()
        functions = tuple(f for _, f in self.functions)
        return Executable(functions, tuple(self.instructions), tuple(constants), tuple(objects))

    def _function(self) -> None:
        name = self._name()
        function: Function
        if self._maybe("packed_func"):
            declaration = self._declaration() if self._maybe("(") else None
            self._sign(";")
            function = PackedFunction(name, declaration)
        elif self._maybe("kernel"):
            function = KernelFunction(self._signature(name))
            self._sign(";")
        else:
            self._sign("(")
            params = tuple(self._list(")", self._name))
            self._sign("registers")
            registers = self._int()
            self._sign(":")
            start = len(self.instructions)
            while self._instruction():
                pass
            function = VMFunction(name, start, len(self.instructions) - start, params, registers)
        self.functions.append((name, function))

    def _declaration(self) -> Declaration:
        library = self._string()
        self._sign(",")
        symbol = self._string()
        self._sign(",")
        signature = self._string()
        self._sign(")")
        return Declaration(library, symbol, signature)

    # Code

    def _instruction(self) -> bool:
        if self._maybe("call"):
            self._call()
        elif self._maybe("ret"):
            self.instructions.append(Ret(self._register()))
        elif self._maybe("if"):
            cond = self._register()
            self._sign(",")
            self.instructions.append(If(cond, self._int()))
        elif self._maybe("goto"):
            self.instructions.append(Goto(self._int()))
        else:
            return False
        return True

    def _call(self) -> None:
        offset = self.tokens[self.at][2]
        name = self._name()
        self._sign("in")
        self._sign(":")
        args = []
        while not self._maybe("dst"):
            args.append(self._arg())
            if not self._maybe(","):
                self._sign("dst")
                break
        self._sign(":")
        # Functions may be defined further down: the index is filled in at the end.
        self.pending.append((len(self.instructions), self._register(), name, args, offset))
        self.instructions.append(Goto(0))

    def _register(self) -> Register:
        text = self._take("register", "a register")[1:]
        return VOID if text == "void" else VM if text == "vm" else Register(self._small(text))

    def _small(self, digits: str) -> int:
        if len(digits) > _MAX_DIGITS:
            self._fail("a number with too many digits")
        return int(digits)

    def _arg(self) -> tuple[str, Any]:
        kind, text, _ = self.tokens[self.at]
        if kind == "register":
            return "value", self._register()
        if kind == "immediate":
            self.at += 1
            return "value", Immediate(self._small(text[1:]))
        if self._maybe("c"):
            self._sign("[")
            index = self._int()
            self._sign("]")
            return "value", Constant(index)
        if self._maybe("f"):
            self._sign("[")
            name = self._name()
            self._sign("]")
            return "function", name
        self._fail(f"expected an operand, found {text!r}")

    def _resolve(self) -> None:
        indices = {name: i for i, (name, _) in enumerate(self.functions)}
        for at, dst, name, args, offset in self.pending:
            operands: list[Arg] = []
            for kind, value in [("function", name), *args]:
                if kind == "value":
                    operands.append(value)
                elif value in indices:
                    operands.append(Func(indices[value]))
                else:
                    self._fail(f"there is no function `{value}`", offset)
            callee, *rest = operands
            assert isinstance(callee, Func)
            self.instructions[at] = Call(dst, callee.index, tuple(rest))

    # Kernels

    def _signature(self, name: str) -> KernelSignature:
        self._sign("(")
        params: list[BufferParam | ScalarParam] = []
        symbols: tuple[str, ...] = ()
        messages: tuple[str, ...] = ()
        while not self._maybe(")"):
            if self._maybe(";"):
                symbols = tuple(self._list(")", self._name))
                break
            params.append(self._param())
            self._maybe(",")
        if self._maybe("asserts"):
            self._sign("[")
            messages = tuple(self._list("]", self._string))
        return KernelSignature(name, tuple(params), symbols, messages)

    def _param(self) -> BufferParam | ScalarParam:
        name = self._name()
        output = name == "out" and self.tokens[self.at][1] != ":"
        if output:
            name = self._name()
        self._sign(":")
        element = self._take("name", "a dtype")
        if not self._maybe("("):
            return ScalarParam(name, element)
        return BufferParam(name, element, tuple(self._list(")", lambda: self._dim(0))), output)

    def _dim(self, depth: int) -> Dim:
        if depth > MAX_DIM_DEPTH:
            self._fail("a dimension nested too deeply")
        if self._maybe("?"):
            return None
        if self._maybe("("):
            left = self._dim(depth + 1)
            op = self.tokens[self.at][1]
            if op not in DIM_OPS:
                self._fail(f"expected an operator, found {op!r}")
            self.at += 1
            right = self._dim(depth + 1)
            self._sign(")")
            return (op, left, right)
        return self._int() if self.tokens[self.at][0] == "int" else self._name()

    # Constants

    def _constant(self, depth: int) -> Any:
        kind, text, _ = self.tokens[self.at]
        if depth > MAX_CONSTANT_DEPTH:
            self._fail("a constant nested too deeply")
        if kind == "string":
            return self._string()
        if kind == "int":
            return self._int()
        if kind == "float":
            self.at += 1
            return float(text)
        if self._maybe("("):
            return tuple(self._list(")", lambda: self._constant(depth + 1)))
        if kind == "name" and text in ("none", "true", "false"):
            self.at += 1
            return {"none": None, "true": True, "false": False}[text]
        if self._maybe("shape"):
            self._sign("(")
            return ShapeTuple(self._list(")", self._int))
        if self._maybe("float"):
            return self._float_bits()
        if self._maybe("dtype"):
            return self._dtype()
        self._sign("tensor")
        return self._tensor()

    def _float_bits(self) -> float:
        text = self._string()
        if not re.fullmatch(r"[0-9a-f]{16}", text):
            self._fail("a float is written as 16 hexadecimal digits")
        return float(np.frombuffer(bytes.fromhex(text), "<f8")[0])

    def _dtype(self) -> Any:
        name = self._take("name", "a dtype")
        try:
            return dtype(name)
        except ValueError:
            self.at -= 1
            self._fail(f"`{name}` is no dtype")

    def _tensor(self) -> Any:
        element = numpy_dtype(self._dtype())
        self._sign("(")
        shape = tuple(self._list(")", self._int))
        if self._maybe("["):
            values = np.array(self._list("]", self._number), element)
        else:
            data = self._base64()
            if len(data) % element.itemsize:
                self._fail("the data does not fit the dtype")
            values = np.frombuffer(data, element.newbyteorder("<"))
        count = 1
        for dim in shape:
            count *= dim
        if any(d < 0 for d in shape) or count != values.size:
            self._fail(f"a tensor of shape {shape} has {count} elements, not {values.size}")
        made = empty(shape, element.name)
        np.copyto(made, values.reshape(shape))
        made.flags.writeable = False
        return made

    def _number(self) -> int | float | bool:
        kind, text, _ = self.tokens[self.at]
        if text in ("true", "false") and kind == "name":
            self.at += 1
            return text == "true"
        if kind == "float":
            self.at += 1
            return float(text)
        return self._int()

    def _base64(self) -> bytes:
        self._sign("base64")
        try:
            return base64.b64decode(self._string(), validate=True)
        except (binascii.Error, ValueError):
            self.at -= 1
            self._fail("a string that is no base64")
