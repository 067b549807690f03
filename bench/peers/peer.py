#!/usr/bin/env python3
"""Measures one widely used encoder in its own process; the last line of the output is JSON.

    peer.py --peer bert --length 4096 --type fp32 --threads 2 --repeats 3

Models are built from their configurations with random weights; nothing is downloaded. All except lfm2 have the size of
BERT base (12 layers, hidden size 768, 12 heads, feed-forward size 3072; two thirds of it in gated feed-forward layers,
for an equal number of operations) and a vocabulary of 30522. The batch size is 1. Global tokens, where a model has
them, are 230 per 4,096 and are part of the tokens.
"""
import argparse
import json
import os
import time

from runtimes import RUNTIMES

LAYERS, HIDDEN, HEADS, INNER, VOCABULARY = 12, 768, 12, 3072, 30522
RADIUS = 84


def global_tokens(length):
    return max(1, round(length * 230 / 4096))


def bert(torch, length):
    """Full attention by torch's scaled_dot_product_attention."""
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=VOCABULARY, max_position_embeddings=length, attention_probs_dropout_prob=0.0)
    config._attn_implementation = "sdpa"
    return BertModel(config, add_pooling_layer=False), {}


def longformer(torch, length):
    """Window of 168 keys, 5.6 % global tokens."""
    from transformers import LongformerConfig, LongformerModel

    config = LongformerConfig(vocab_size=VOCABULARY, attention_window=2 * RADIUS, pad_token_id=1,
                              max_position_embeddings=length + 2 * RADIUS + 2)
    mask = torch.zeros(1, length, dtype=torch.long)
    mask[:, :global_tokens(length)] = 1
    return LongformerModel(config, add_pooling_layer=False), {"global_attention_mask": mask}


def bigbird(torch, length):
    """Block-sparse attention: blocks of 64, three random blocks."""
    from transformers import BigBirdConfig, BigBirdModel

    config = BigBirdConfig(vocab_size=VOCABULARY, attention_type="block_sparse", block_size=64, num_random_blocks=3,
                           max_position_embeddings=length)
    return BigBirdModel(config, add_pooling_layer=False), {}


def modernbert(torch, length):
    """Window of 128 keys; every third layer has full attention."""
    from transformers import ModernBertConfig, ModernBertModel

    config = ModernBertConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=LAYERS,
                              num_attention_heads=HEADS, intermediate_size=INNER * 2 // 3, local_attention=128,
                              global_attn_every_n_layers=3, max_position_embeddings=max(length, 8192),
                              pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
    config._attn_implementation = "sdpa"
    return ModernBertModel(config), {}


def longt5(torch, length):
    """Encoder with transient-global attention: a window of radius 127 and one summary token per 16 tokens."""
    from transformers import LongT5Config, LongT5EncoderModel

    config = LongT5Config(vocab_size=VOCABULARY, d_model=HIDDEN, d_kv=HIDDEN // HEADS, d_ff=INNER * 2 // 3,
                          num_layers=LAYERS, num_heads=HEADS, local_radius=127, global_block_size=16,
                          encoder_attention_type="transient-global", feed_forward_proj="gated-gelu",
                          is_encoder_decoder=False, use_cache=False)
    return LongT5EncoderModel(config), {}


def lfm2(torch, length):
    """The 350M configuration of LFM2: 16 layers of hidden size 1024, ten with short convolutions and six with causal
    attention with 8 key heads. A decoder used as an encoder, as in its embedding models; larger than BERT base."""
    from transformers import Lfm2Config, Lfm2Model

    attention = (2, 5, 8, 10, 12, 14)
    config = Lfm2Config(vocab_size=65536, hidden_size=1024, num_hidden_layers=16, num_attention_heads=16,
                        num_key_value_heads=8, conv_L_cache=3, block_ff_dim=6656,
                        layer_types=["full_attention" if i in attention else "conv" for i in range(16)],
                        max_position_embeddings=max(length, 4096), use_cache=False)
    config._attn_implementation = "sdpa"
    return Lfm2Model(config), {}


def flex(torch, length):
    """A plain Post-LN encoder with compiled FlexAttention: window of radius 84 and 5.6 % global tokens."""
    from torch import nn
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    some = global_tokens(length)
    mask = create_block_mask(lambda b, h, q, k: ((q - k).abs() <= RADIUS) | (q < some) | (k < some), None, None,
                             length, length, device="cpu")
    attention = torch.compile(flex_attention, dynamic=False)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.projections, self.output = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
            self.inner, self.outer = nn.Linear(HIDDEN, INNER), nn.Linear(INNER, HIDDEN)
            self.attention_norm, self.feed_forward_norm = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)

        def forward(self, x):
            q, k, v = (t.view(1, length, HEADS, -1).transpose(1, 2) for t in self.projections(x).chunk(3, dim=-1))
            a = attention(q, k, v, block_mask=mask).transpose(1, 2).reshape(1, length, HIDDEN)
            x = self.attention_norm(x + self.output(a))
            return self.feed_forward_norm(x + self.outer(nn.functional.gelu(self.inner(x))))

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.positions = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(length, HIDDEN)
            self.norm, self.layers = nn.LayerNorm(HIDDEN), nn.Sequential(*(Layer() for _ in range(LAYERS)))

        def forward(self, input_ids):
            return self.layers(self.norm(self.embedding(input_ids) + self.positions.weight))

    return Encoder(), {}


PEERS = {"bert": bert, "flex": flex, "modernbert": modernbert, "longt5": longt5, "longformer": longformer,
         "bigbird": bigbird, "lfm2": lfm2}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, choices=[*PEERS, *RUNTIMES])
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--mode", choices=("infer", "train"), default="infer")
    parser.add_argument("--type", choices=("fp32", "bf16", "int8"), default="fp32",
                        help="number type; int8 only in inference runtimes, bf16 only in the other peers")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ["OMP_WAIT_POLICY"] = "passive"
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    report(call_of(torch, options), options.repeats)


def call_of(torch, options):
    """Returns the function to time: one inference or training step."""
    training = options.mode == "train"
    make, types = RUNTIMES.get(options.peer, (None, ("fp32", "bf16")))
    if options.type not in types or (make and training):
        raise SystemExit(f"{options.peer}: expected inference" if make and training else
                         f"{options.peer}: expected type {' or '.join(types)}, got {options.type}")
    model, extra = PEERS["bert" if make else options.peer](torch, options.length)
    ids = torch.randint(5, VOCABULARY, (1, options.length))
    model.train(training)
    if make:
        return make(torch, model, ids, options.type, options.threads)
    if options.type == "bf16":
        model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6) if training else None

    def call():
        with torch.set_grad_enabled(training):
            states = model(input_ids=ids, **extra)
            states = states if isinstance(states, torch.Tensor) else states.last_hidden_state
        if training:
            states.float().square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    return call


def report(call, repeats):
    """Times `repeats` calls after a warm-up call; prints the medians as JSON."""
    call()  # warm-up: compilation, packing of weights and page faults are not timed
    cpu, wall = [], []
    for _ in range(repeats):
        start, cpu_start = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    print(json.dumps({"cpu_s": sorted(cpu)[len(cpu) // 2], "wall_s": sorted(wall)[len(wall) // 2]}))


if __name__ == "__main__":
    main()
