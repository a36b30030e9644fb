# Makes sense.bin of WordNet 3.0 (Debian: the package wordnet-base):
#
#	python3 testdata/sense.py /usr/share/wordnet
#
# Needs numpy, scipy and snowballstemmer. Words that stand in like definitions
# get like vectors: a matrix of stems and sets of synonyms, weighted by tf-idf,
# brought to 250 dimensions (latent semantic analysis), of which 4 bits are kept
# for each of the 10,000 most frequent stems.
import re,math,sys
import numpy as np, scipy.sparse as sp
from scipy.sparse.linalg import svds
import snowballstemmer
st=snowballstemmer.stemmer('english'); cache={}
def stem(w):
    if w not in cache: cache[w]=st.stemWord(w)
    return cache[w]
stop=set(open('stopwords.txt').read().split())
def toks(t): return [stem(w) for w in re.findall(r"[a-z]+",t.lower().replace("'s","")) if w not in stop and len(w)>2]
W=sys.argv[1]+'/'
syn={}
for pos,p in (('noun','n'),('verb','v'),('adj','a'),('adv','r')):
    for l in open(W+'data.'+pos,encoding='latin1'):
        if l.startswith('  '): continue
        head,gl=l.split(' | ',1); f=head.split()
        n=int(f[3],16); ws=[f[4+2*i].split('(')[0] for i in range(n)]
        f2=f[4+2*n:]; k=int(f2[0]); links=[(f2[1+4*i],f2[3+4*i].replace('s','a')+f2[2+4*i]) for i in range(k)]
        syn[p+f[0]]=(ws,links,gl)
docs=[];
for key,(ws,links,gl) in syn.items():
    d={}
    def add(ts,w):
        for t in ts: d[t]=d.get(t,0)+w
    for w in ws: add(toks(w.replace('_',' ')),2)
    add(toks(gl),1)
    for kind,to in links:
        if kind in('@','+','&','$','^','\\','*','>','=') and to in syn:
            for w in syn[to][0]: add(toks(w.replace('_',' ')),.7)
    docs.append(d)
df={}
for d in docs:
    for t in d: df[t]=df.get(t,0)+1
vocab=[t for t in df if df[t]>=4]; ix={t:i for i,t in enumerate(vocab)}
N=len(docs); idf=np.array([math.log(N/df[t]) for t in vocab])
r,c,v=[],[],[]
for j,d in enumerate(docs):
    items=[(ix[t],math.log(1+w)*idf[ix[t]]) for t,w in d.items() if t in ix]
    nrm=math.sqrt(sum(x*x for _,x in items)) or 1
    for i,x in items: r.append(i);c.append(j);v.append(x/nrm)
M=sp.csr_matrix((v,(r,c)),shape=(len(vocab),N))
U,S,_=svds(M,k=250)
k=250; V=10000
base=U[:,-k:]*S[-k:]; base/=np.linalg.norm(base,axis=1,keepdims=True)
ok=[i for i in np.argsort(idf) if len(vocab[i])<=16][:V]
ok.sort(key=lambda i: vocab[i])
W=base[ok]; s=W.std(0); step=(.35*s).astype('<f4')
q=np.clip(np.round(W/step),-7,7).astype(int)+8
with open('sense.bin','wb') as f:
    f.write(b''.join(vocab[i].encode().ljust(16,b'\0') for i in ok))
    f.write(step.tobytes())
    f.write((q[:,0::2]|(q[:,1::2]<<4)).astype(np.uint8).tobytes())
