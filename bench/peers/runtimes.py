"""The peer `bert` (peer.py) in runtimes made for inference: its graph is exported once, then run on arrays of ids.

ONNX Runtime takes int8 as its own dynamic quantization does: weights once, rows at run time. OpenVINO takes int8 from
NNCF, whose calibration sees random ids: what a tensor's range is does not change the time. Export and calibration are not timed, but in the largest resident size.
"""
import pathlib
import tempfile


def exported(torch, model, ids, folder):
    """The model as an ONNX file of this length."""
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
    """A call of ONNX Runtime on the CPU; all graph optimisations, `threads` threads."""
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
    """A call of OpenVINO on the CPU in fp32 (not bf16, which it may choose for itself) or int8, `threads` threads."""
    import openvino as runtime

    with torch.no_grad():
        graph = runtime.convert_model(model, example_input={"input_ids": ids}, input=[("input_ids", list(ids.shape))])
    if number_type == "int8":
        import nncf

        samples = [{"input_ids": torch.randint(5, model.config.vocab_size, tuple(ids.shape)).numpy()}
                   for _ in range(2)]
        graph = nncf.quantize(graph, nncf.Dataset(samples), model_type=nncf.ModelType.TRANSFORMER, subset_size=2)
    compiled = runtime.Core().compile_model(graph, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                                                           "INFERENCE_PRECISION_HINT": "f32"})
    inputs = {"input_ids": ids.numpy()}
    return lambda: compiled(inputs)


# name → (function that makes the call, number types); all run bert
RUNTIMES = {"onnxruntime": (onnx_runtime, ("fp32", "int8")), "openvino": (openvino, ("fp32", "int8"))}
