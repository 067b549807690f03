"""Describes the processor of the machine on which a measurement runs."""


def machine():
    """{"model": …, "family": …, "avx512": …, "amx_bf16": …} of this machine's processor.

    Processors of several generations share a name ("AMD EPYC"); family and model number distinguish them.
    """
    with open("/proc/cpuinfo") as file:
        lines = file.read().splitlines()

    def value(key):
        return next((line.split(":", 1)[1].strip() for line in lines if line.split(":")[0].strip() == key), "unknown")

    flags = next((line for line in lines if line.startswith("flags")), "")
    return {"model": value("model name"), "family": f"family {value('cpu family')}, model {value('model')}",
            "avx512": " avx512f" in flags, "amx_bf16": " amx_bf16" in flags}
