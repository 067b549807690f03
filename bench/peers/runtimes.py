"""The peer `bert` (peer.py) in inference runtimes: its graph is exported once, then run on arrays of ids.

int8 in ONNX Runtime is its dynamic quantization: weights are quantized once, rows of activations at run time. int8 in
OpenVINO is quantized by NNCF, calibrated with short texts of random ids, because the ranges of the tensors do not affect
the time (with a text of 8,192 tokens calibration takes 20 minutes and 8 GB). Export and calibration are not timed, but
they count in the peak RSS.
"""
import pathlib
import tempfile

CALIBRATED = 512  # tokens of a calibration text, at most


def exported(torch, model, ids, folder):
    """Exports the model for this input length to an ONNX file; returns its path."""
    path = pathlib.Path(folder) / "model.onnx"

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids).last_hidden_state

    with torch.no_grad():
        torch.onnx.export(States().eval(), (ids,), str(path), input_names=["input_ids"], output_names=["states"],
                          dynamo=True)
    return path


def onnx_runtime(torch, model, ids, number_type, threads):
    """Returns a function that runs the model in ONNX Runtime on the CPU: all graph optimisations, `threads` threads."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = exported(torch, model, ids, folder)
        if number_type == "int8":
            from onnxruntime.quantization import QuantType, quantize_dynamic

            quantized = path.with_name("int8.onnx")
            quantize_dynamic(str(path), str(quantized), weight_type=QuantType.QInt8, per_channel=True)
            path = quantized
        setting = onnxruntime.SessionOptions()
        setting.intra_op_num_threads, setting.inter_op_num_threads = threads, 1
        setting.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = onnxruntime.InferenceSession(str(path), setting, providers=["CPUExecutionProvider"])
    inputs = {"input_ids": ids.numpy()}
    return lambda: session.run(None, inputs)


def openvino(torch, model, ids, number_type, threads):
    """Returns a function that runs the model in OpenVINO on the CPU, in fp32 (forced, because OpenVINO may choose bf16)
    or int8, with `threads` threads."""
    import openvino as runtime

    with torch.no_grad():
        graph = runtime.convert_model(model, example_input={"input_ids": ids}, input=[("input_ids", [1, -1])])
    if number_type == "int8":
        import nncf

        samples = [{"input_ids": torch.randint(5, model.config.vocab_size, (1, min(ids.shape[1], CALIBRATED))).numpy()}
                   for _ in range(2)]
        graph = nncf.quantize(graph, nncf.Dataset(samples), model_type=nncf.ModelType.TRANSFORMER, subset_size=2)
    graph.reshape(list(ids.shape))
    compiled = runtime.Core().compile_model(graph, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                                                           "INFERENCE_PRECISION_HINT": "f32"})
    inputs = {"input_ids": ids.numpy()}
    return lambda: compiled(inputs)


# name → (function that returns the call, number types); all run `bert`
RUNTIMES = {"onnxruntime": (onnx_runtime, ("fp32", "int8")), "openvino": (openvino, ("fp32", "int8"))}
