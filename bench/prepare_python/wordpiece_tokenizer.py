"""BERT's uncased WordPiece with the package `tokenizers`."""
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers


def load_tokenizer(vocab):
    """A tokeniser that adds no special tokens. The vocabulary file has one piece per line."""
    with open(vocab, encoding="utf-8") as lines:
        ids = {line.rstrip("\n"): number for number, line in enumerate(lines)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=200))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def encode_words(tokenizer, texts):
    """One encoding per text, a list of words: .ids are the pieces, .word_ids the word number of each piece."""
    return tokenizer.encode_batch(texts, is_pretokenized=True, add_special_tokens=False)
