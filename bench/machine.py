"""The kind of machine a measurement was made on."""


def machine():
    """{"model": …, "avx512": …, "amx_bf16": …} of this machine's processor."""
    with open("/proc/cpuinfo") as file:
        lines = file.read().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    flags = next((line for line in lines if line.startswith("flags")), "")
    return {"model": model, "avx512": " avx512f" in flags, "amx_bf16": " amx_bf16" in flags}
