"""Every operator that is translated, by domain and name. What is not here may still be a function: see `functions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relaxlang.frontend.onnx import (
    contrib,
    control,
    elementwise,
    image,
    index,
    linalg,
    norm,
    quantize,
    recurrent,
    reduce,
    shape,
    window,
)

if TYPE_CHECKING:
    from relaxlang.frontend.onnx.graph import Converter

_ONNX: dict[str, Converter] = {
    # elements
    "Abs": elementwise.absolute, "Acos": elementwise.acos, "Acosh": elementwise.acosh, "Add": elementwise.add,
    "And": elementwise.logical_and, "Asin": elementwise.asin, "Asinh": elementwise.asinh, "Atan": elementwise.atan,
    "Atanh": elementwise.atanh, "BitShift": elementwise.bit_shift, "BitwiseAnd": elementwise.bitwise_and,
    "BitwiseNot": elementwise.bitwise_not, "BitwiseOr": elementwise.bitwise_or, "BitwiseXor": elementwise.bitwise_xor,
    "Cast": elementwise.cast, "CastLike": elementwise.cast_like, "Ceil": elementwise.ceil, "Celu": elementwise.celu,
    "Clip": elementwise.clip, "Cos": elementwise.cos, "Cosh": elementwise.cosh, "Div": elementwise.divide,
    "Dropout": elementwise.dropout, "Elu": elementwise.elu, "Equal": elementwise.equal, "Erf": elementwise.erf,
    "Exp": elementwise.exp, "Floor": elementwise.floor, "Gelu": elementwise.gelu, "Greater": elementwise.greater,
    "GreaterOrEqual": elementwise.greater_equal, "HardSigmoid": elementwise.hard_sigmoid,
    "HardSwish": elementwise.hard_swish, "Identity": elementwise.identity, "IsInf": elementwise.is_inf,
    "IsNaN": elementwise.is_nan, "LeakyRelu": elementwise.leaky_relu, "Less": elementwise.less,
    "LessOrEqual": elementwise.less_equal, "Log": elementwise.log, "Max": elementwise.maximum,
    "Mean": elementwise.mean_of, "Min": elementwise.minimum, "Mish": elementwise.mish, "Mod": elementwise.modulo,
    "Mul": elementwise.multiply, "Neg": elementwise.negate, "Not": elementwise.logical_not,
    "Or": elementwise.logical_or, "PRelu": elementwise.prelu, "Pow": elementwise.power,
    "Reciprocal": elementwise.reciprocal, "Relu": elementwise.relu, "Round": elementwise.round_even,
    "Selu": elementwise.selu, "Sigmoid": elementwise.sigmoid, "Sign": elementwise.sign, "Sin": elementwise.sin,
    "Sinh": elementwise.sinh, "Softplus": elementwise.softplus, "Softsign": elementwise.softsign,
    "Sqrt": elementwise.sqrt, "Sub": elementwise.subtract, "Sum": elementwise.sum_of, "Tan": elementwise.tan,
    "Tanh": elementwise.tanh, "ThresholdedRelu": elementwise.thresholded_relu, "Where": elementwise.where,
    "Xor": elementwise.logical_xor,
    # along axes
    "ArgMax": reduce.arg_max, "ArgMin": reduce.arg_min, "CumProd": reduce.cum_prod, "CumSum": reduce.cum_sum,
    "Hardmax": reduce.hardmax, "LogSoftmax": reduce.log_softmax, "LpNormalization": reduce.lp_normalization,
    "ReduceL1": reduce.reduce_l1, "ReduceL2": reduce.reduce_l2, "ReduceLogSum": reduce.reduce_log_sum,
    "ReduceLogSumExp": reduce.reduce_log_sum_exp, "ReduceMax": reduce.reduce_max, "ReduceMean": reduce.reduce_mean,
    "ReduceMin": reduce.reduce_min, "ReduceProd": reduce.reduce_prod, "ReduceSum": reduce.reduce_sum,
    "ReduceSumSquare": reduce.reduce_sum_square, "Softmax": reduce.softmax, "TopK": reduce.top_k,
    # shapes
    "CenterCropPad": shape.center_crop, "Concat": shape.concat, "Constant": shape.constant,
    "ConstantOfShape": shape.constant_of_shape, "DepthToSpace": shape.depth_to_space, "Expand": shape.expand,
    "EyeLike": shape.eye_like, "Flatten": shape.flatten, "Range": shape.range_, "Reshape": shape.reshape,
    "Shape": shape.shape, "Size": shape.size, "Slice": shape.slice_, "SpaceToDepth": shape.space_to_depth,
    "Split": shape.split, "Squeeze": shape.squeeze, "Tile": shape.tile, "Transpose": shape.transpose,
    "Trilu": shape.trilu, "Unsqueeze": shape.unsqueeze,
    # matrices and windows
    "Det": linalg.det, "Einsum": linalg.einsum, "Gemm": linalg.gemm, "MatMul": linalg.matmul,
    "AveragePool": window.average_pool, "Col2Im": window.col_to_image, "Conv": window.conv,
    "ConvTranspose": window.conv_transpose, "GlobalAveragePool": window.global_average_pool,
    "GlobalMaxPool": window.global_max_pool, "LRN": window.local_response_normalization, "LpPool": window.lp_pool,
    "MaxPool": window.max_pool, "Pad": window.pad,
    # normalisations
    "BatchNormalization": norm.batch_normalization, "GroupNormalization": norm.group_normalization,
    "InstanceNormalization": norm.instance_normalization, "LayerNormalization": norm.layer_normalization,
    "RMSNormalization": norm.rms_normalization, "SimplifiedLayerNormalization": norm.rms_normalization,
    # places
    "Compress": index.compress, "Gather": index.gather, "GatherElements": index.gather_elements,
    "GatherND": index.gather_nd, "NonMaxSuppression": index.non_max_suppression,
    "NonZero": index.non_zero, "OneHot": index.one_hot,
    "ReverseSequence": index.reverse_sequence, "RoiAlign": index.roi_align, "Scatter": index.scatter_elements,
    "ScatterElements": index.scatter_elements, "ScatterND": index.scatter_nd,
    "TensorScatter": index.tensor_scatter, "Unique": index.unique,
    # images
    "GridSample": image.grid_sample, "Resize": image.resize, "Upsample": image.resize,
    # quantized arithmetic
    "ConvInteger": quantize.conv_integer, "DequantizeLinear": quantize.dequantize_linear,
    "MatMulInteger": quantize.matmul_integer, "QLinearConv": quantize.qlinear_conv,
    "QLinearMatMul": quantize.qlinear_matmul, "QuantizeLinear": quantize.quantize_linear,
    # recurrent layers
    "GRU": recurrent.gru, "LSTM": recurrent.lstm, "RNN": recurrent.rnn,
    # control flow, sequences
    "ConcatFromSequence": control.concat_from_sequence, "If": control.if_, "Loop": control.loop,
    "Optional": control.optional, "OptionalGetElement": control.optional_get_element,
    "OptionalHasElement": control.optional_has_element, "Scan": control.scan, "SequenceAt": control.sequence_at,
    "SequenceConstruct": control.sequence_construct, "SequenceEmpty": control.sequence_empty,
    "SequenceErase": control.sequence_erase, "SequenceInsert": control.sequence_insert,
    "SequenceLength": control.sequence_length, "SequenceMap": control.sequence_map,
    "SplitToSequence": control.split_to_sequence,
}  # fmt: skip

_MICROSOFT: dict[str, Converter] = {
    "BiasGelu": contrib.gelu, "FastGelu": contrib.fast_gelu, "FusedMatMul": contrib.fused_matmul, "Gelu": contrib.gelu,
    "QuickGelu": contrib.quick_gelu, "SkipLayerNormalization": contrib.skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": contrib.skip_rms_normalization,
}  # fmt: skip

OPERATORS: dict[tuple[str, str], Converter] = {
    **{("", name): converter for name, converter in _ONNX.items()},
    **{("com.microsoft", name): converter for name, converter in _MICROSOFT.items()},
    ("ai.onnx.ml", "ArrayFeatureExtractor"): index.array_feature_extractor,
}
