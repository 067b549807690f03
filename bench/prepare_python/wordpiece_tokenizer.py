"""BERT's uncased WordPiece by the package `tokenizers`."""
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers


def load_tokenizer(vocab):
    """No special tokens are added. A vocabulary has one piece a line."""
    with open(vocab, encoding="utf-8") as lines:
        ids = {line.rstrip("\n"): number for number, line in enumerate(lines)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=200))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def encode_words(tokenizer, texts):
    """An encoding of each text, which is a list of words: .ids, and .word_ids, the word of each of them."""
    return tokenizer.encode_batch(texts, is_pretokenized=True, add_special_tokens=False)
