"""A model of any size with random weights and a vocabulary, for measurements that need no training."""
import json
import subprocess


def random_model(program, folder, model, records=8, long_tokens=4096):
    """Trains one step on a few generated HotpotQA records; returns the model's folder. model: the section "model" of
    the configuration."""
    def etc(*words):
        subprocess.run([program, *map(str, words)], check=True, capture_output=True)

    sample, data, run = folder / "sample", folder / "train.h5", folder / "run"
    etc("sample", "--task", "hotpotqa", "--records", records, "--output", sample)
    vocabulary = sample / "vocab.txt"
    etc("prepare", "--task", "hotpotqa", "--split", "train", "--input", sample / "train.json", "--vocab", vocabulary,
        "--max-long-tokens", long_tokens, "--output", data)
    config = folder / "config.json"
    config.write_text(json.dumps({"model": model, "task": {"name": "hotpotqa"},
                                  "data": {"train": [str(data)], "vocab": str(vocabulary)},
                                  "training": {"batch_size": 1, "steps": 1}}))
    etc("train", "--config", config, "--output", run)
    return run / "best" if (run / "best").exists() else run / "last"
