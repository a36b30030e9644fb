# Makes sense.bin:
#
#	python3 testdata/sense.py WORDNET MODEL
#
# WORDNET is a folder with WordNet 3.0's data.* and index.* (Debian: the package
# wordnet-base), MODEL one with tokenizer.json and model.onnx of the sentence
# model all-MiniLM-L6-v2 (Apache License 2.0). Needs numpy, scipy, onnxruntime,
# tokenizers and snowballstemmer, and about an hour of one core.
#
# The model reads each word by itself and a part of WordNet's definitions and
# examples. Then each stem gets the vector with which the sum over a text's words
# comes nearest to what the model said of the text: ridge regression, by conjugate
# gradients. 20,000 stems are kept, 4 bits for each of 256 dimensions.
import json, random, re, sys, unicodedata
import numpy as np, scipy.sparse as sp, onnxruntime, snowballstemmer
from tokenizers import Tokenizer

WORDNET, MODEL = sys.argv[1], sys.argv[2]
TEXTS, STEMS, DIMS, RIDGE = 100_000, 20_000, 256, 1
stemmer = snowballstemmer.stemmer('english')
vocabulary = json.load(open(MODEL + '/tokenizer.json'))['model']['vocab']


def lines(kind, pos):
    for line in open(f'{WORDNET}/{kind}.{pos}', encoding='latin1'):
        if not line.startswith('  '):
            yield line.rstrip()


def texts():
    words = {w for w in vocabulary if re.fullmatch('[a-z]{2,20}', w)}
    said = []
    for pos in ('noun', 'verb', 'adj', 'adv'):
        for line in lines('data', pos):
            head, gloss = line.split(' | ', 1)
            f = head.split()
            names = [f[4 + 2 * i].split('(')[0].replace('_', ' ') for i in range(int(f[3], 16))]
            said.append(', '.join(names) + ': ' + re.split(r'; "', gloss)[0].strip())
            said += [e for e in re.findall(r'"([^"]+)"', gloss) if len(e) > 20]
        for line in lines('index', pos):
            f = line.split()
            if re.fullmatch('[a-z]{3,20}', f[0]) and int(f[len(f) - int(f[2]) - 1]) > 0:
                words.add(f[0])
    words = sorted(words)
    random.Random(1).shuffle(said)
    return (words + said)[:TEXTS]


def read(all):
    """What the model says of texts, a row for each."""
    tokenizer = Tokenizer.from_file(MODEL + '/tokenizer.json')
    tokenizer.enable_truncation(128)
    tokenizer.no_padding()
    model = onnxruntime.InferenceSession(MODEL + '/model.onnx')
    inputs = [i.name for i in model.get_inputs()]
    encoded = tokenizer.encode_batch(all)
    order = np.argsort([len(e.ids) for e in encoded])
    out = np.zeros((len(all), 384), np.float32)
    for at in range(0, len(order), 64):
        part = order[at:at + 64]
        n = max(len(encoded[i].ids) for i in part)
        ids, mask = np.zeros((len(part), n), np.int64), np.zeros((len(part), n), np.int64)
        for j, i in enumerate(part):
            ids[j, :len(encoded[i].ids)], mask[j, :len(encoded[i].ids)] = encoded[i].ids, 1
        feed = {'input_ids': ids, 'attention_mask': mask}
        if 'token_type_ids' in inputs:
            feed['token_type_ids'] = np.zeros_like(ids)
        o = model.run(None, feed)[0]
        if o.ndim == 3:
            o = (o * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
        out[part] = o / np.linalg.norm(o, axis=1, keepdims=True)
    return out


def stem(word):
    return word if len(word) < 3 else stemmer.stemWord(word)


def stems(text):
    text = ''.join(c for c in unicodedata.normalize('NFKD', text.lower()) if not unicodedata.combining(c))
    words = (re.sub("'s$", '', w).replace("'", '') for w in re.findall(r"[a-z0-9]+(?:'[a-z]+)*", text))
    return [stem(w) for w in words if w]


def fit(all, said):
    split = [stems(t) for t in all]
    often = {}
    for s in split:
        for w in set(s):
            often[w] = often.get(w, 0) + 1
    plain = {stem(w) for w in vocabulary}
    kept = sorted((w for w in often if 1 < len(w) <= 16 and w.isalpha()), key=lambda w: (-often[w], w not in plain, w))[:STEMS]
    at = {w: i for i, w in enumerate(kept)}
    row, column, value, known = [], [], [], []
    for i, s in enumerate(split):
        times = {}
        for w in s:
            if w in at:
                times[w] = times.get(w, 0) + 1
        for w, n in times.items():
            row.append(len(known)), column.append(at[w]), value.append(n ** .5)
        if times:
            known.append(i)
    X = sp.csr_matrix((value, (row, column)), shape=(len(known), len(kept)), dtype=np.float32)
    Y = said[known] - said[known].mean(0)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    _, axes = np.linalg.eigh(Y.T @ Y)
    Y = (Y @ axes[:, ::-1][:, :DIMS]).astype(np.float32)
    length = np.asarray(X.multiply(X).sum(1)).ravel()
    scale = 1 / np.sqrt(length)  # of each text; the second time the one that fits best
    E = np.zeros((len(kept), DIMS), np.float32)
    for _ in range(2):
        A = sp.diags(scale.astype(np.float32)) @ X
        T = A.T.tocsr()
        M = (1 / (np.asarray(A.multiply(A).sum(0)).ravel() + RIDGE)).astype(np.float32)[:, None]
        R = T @ (Y - A @ E) - RIDGE * E
        Z = M * R
        P, rz = Z.copy(), (R * Z).sum(0)
        for _ in range(12):
            Q = T @ (A @ P) + RIDGE * P
            a = rz / np.maximum((P * Q).sum(0), 1e-12)
            E, R = E + a * P, R - a * Q
            Z = M * R
            P, rz = Z + (R * Z).sum(0) / np.maximum(rz, 1e-12) * P, (R * Z).sum(0)
        guess = X @ E
        scale = np.clip((guess * Y).sum(1) / np.maximum((guess ** 2).sum(1), 1e-6), .2 / np.sqrt(length), 2 / np.sqrt(length))
    return kept, E


def write(kept, E):
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(DIMS, DIMS)))  # makes the dimensions alike
    E = E @ turn
    step = .35 * np.linalg.norm(E, axis=1, keepdims=True) / DIMS ** .5
    four = (np.clip(np.round(E / np.maximum(step, 1e-9)), -8, 7) + 8).astype(np.uint8)
    order = sorted(range(len(kept)), key=lambda i: kept[i])
    with open('sense.bin', 'wb') as f:
        f.write(b''.join(kept[i].encode().ljust(16, b'\0') for i in order))
        for i in order:
            f.write(np.float32(step[i, 0]).tobytes() + (four[i, 0::2] | four[i, 1::2] << 4).tobytes())


all = texts()
write(*fit(all, read(all)))
