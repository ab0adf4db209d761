"""Codes of models that are imported from other frameworks: 80xx."""

from relaxlang.base.codes.info import CodeInfo

IMPORTING: dict[str, CodeInfo] = {
    "RLX8001": CodeInfo(
        "a model that can't be read",
        "The file is damaged, truncated or no ONNX model at all, or it was written for a newer release of ONNX than the "
        "installed `onnx` package knows. A module of a model that was built before is read when somebody looks at it: by "
        "then, the file must be what it was when it was loaded.",
    ),
    "RLX8002": CodeInfo(
        "operators that the importer lacks",
        "The message names every operator of the model, with its domain and version, for which relaxlang has no "
        "translation, and the nodes that use it. Export the model with other operators, or replace the nodes.",
    ),
    "RLX8003": CodeInfo(
        "a model that is not well-formed",
        "A node breaks the rules of its operator, or the graph its own: an attribute of a wrong kind, a value that "
        "nothing computes, nodes that are not in order. `onnx.checker.check_model` tells more.",
    ),
    "RLX8004": CodeInfo(
        "weights that are not where the model says",
        "A model may keep its weights in further files, named relative to the model's own. One of them is missing, too "
        "short, or outside of the model's folder.",
    ),
    "RLX8005": CodeInfo(
        "a shape that does not fit the model",
        "`shapes` gives inputs of the model their shapes: `{\"x\": (\"n\", 3, 224, 224)}`, a number or the name of a "
        "symbolic dimension for each. Inputs whose rank the model does not state need one.",
    ),
    "RLX8006": CodeInfo(
        "a use of an operator that the importer lacks",
        "The operator is known, but not with this attribute, type, rank or kind of input. The notes say which node it "
        "is.",
    ),
    "RLX8007": CodeInfo(
        "an importer whose package is not installed",
        "Importers need the packages that read the foreign formats: `pip install 'relaxlang[onnx]'`.",
    ),
}  # fmt: skip
