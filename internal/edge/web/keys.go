package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// codeLife is how long a login link may be used.
	codeLife = 2 * time.Minute
	// maxCodes bounds the login links that are open at a time; a further one
	// ends the oldest.
	maxCodes = 16
	// sessionLife is how long a browser stays signed in.
	sessionLife = 30 * 24 * time.Hour

	idSize = 16
)

// keys are the credentials that are in force: the token, and all that comes
// from it. A new token makes new keys, so that nothing of the old ones holds.
//
// A browser's session is a cookie that the gateway can check without having
// stored it: an expiry and an id under a MAC whose key comes from the token. So
// it outlives restarts, and ends with the token. Signing out is remembered
// until this process ends.
type keys struct {
	usable bool // there is a token
	token  [sha256.Size]byte
	mac    []byte

	mu    sync.Mutex
	codes map[[sha256.Size]byte]time.Time // hashes of open login codes, and their ends
	gone  map[[idSize]byte]time.Time      // sessions that were signed out, and their ends
}

func newKeys(token string) *keys {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("goclaw: sessions of the web page"))
	return &keys{
		usable: token != "", token: sha256.Sum256([]byte(token)), mac: m.Sum(nil),
		codes: map[[sha256.Size]byte]time.Time{}, gone: map[[idSize]byte]time.Time{},
	}
}

// opensBearer reports whether r brings the token. Hashes are compared, so that
// the time taken tells neither the token nor its length.
func (k *keys) opensBearer(r *http.Request) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(given)))
	same := subtle.ConstantTimeCompare(got[:], k.token[:]) == 1
	return same && k.usable && strings.EqualFold(scheme, "Bearer")
}

// newCode makes a one-time code. Only its hash is kept.
func (k *keys) newCode(now time.Time) (code string, ends time.Time) {
	raw := make([]byte, 32)
	rand.Read(raw)
	code, ends = base64.RawURLEncoding.EncodeToString(raw), now.Add(codeLife)
	k.mu.Lock()
	defer k.mu.Unlock()
	forgetOld(k.codes, now)
	for len(k.codes) >= maxCodes {
		delete(k.codes, oldest(k.codes))
	}
	k.codes[sha256.Sum256([]byte(code))] = ends
	return code, ends
}

// redeem takes a code, once.
func (k *keys) redeem(code string, now time.Time) bool {
	hash := sha256.Sum256([]byte(code))
	k.mu.Lock()
	defer k.mu.Unlock()
	ends, known := k.codes[hash]
	delete(k.codes, hash)
	return known && k.usable && now.Before(ends)
}

// newSession makes a cookie's value.
func (k *keys) newSession(now time.Time) (value string, ends time.Time) {
	ends = now.Add(sessionLife)
	raw := binary.BigEndian.AppendUint64(nil, uint64(ends.Unix()))
	raw = append(raw, make([]byte, idSize)...)
	rand.Read(raw[8:])
	return base64.RawURLEncoding.EncodeToString(k.sign(raw)), ends
}

func (k *keys) sign(raw []byte) []byte {
	m := hmac.New(sha256.New, k.mac)
	m.Write(raw)
	return m.Sum(raw)
}

// session reads a cookie's value; ok is false unless it is one of ours that
// holds.
func (k *keys) session(value string, now time.Time) (id [idSize]byte, ends time.Time, ok bool) {
	const size = 8 + idSize
	raw, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil || len(raw) != size+sha256.Size || !k.usable {
		return id, ends, false
	}
	want := k.sign(append([]byte(nil), raw[:size]...))
	if !hmac.Equal(want, raw) {
		return id, ends, false
	}
	ends = time.Unix(int64(binary.BigEndian.Uint64(raw)), 0)
	copy(id[:], raw[8:])
	k.mu.Lock()
	defer k.mu.Unlock()
	_, gone := k.gone[id]
	return id, ends, !gone && now.Before(ends)
}

// signOut ends a session.
func (k *keys) signOut(id [idSize]byte, ends, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	forgetOld(k.gone, now)
	k.gone[id] = ends
}

func forgetOld[K comparable](m map[K]time.Time, now time.Time) {
	for key, ends := range m {
		if !now.Before(ends) {
			delete(m, key)
		}
	}
}

func oldest[K comparable](m map[K]time.Time) (first K) {
	var least time.Time
	for key, ends := range m {
		if least.IsZero() || ends.Before(least) {
			first, least = key, ends
		}
	}
	return first
}
