package store

import (
	"math"

	"goclaw"
)

// Bucket is what is left of a provider's allowance at a moment. Requests and
// Tokens fill separately, each to a minute's worth.
type Bucket struct {
	Requests float64
	Tokens   float64
	At       goclaw.Millis
}

// Unbounded reports whether r's provider has no allowance at all: there is no
// bucket to keep then.
func Unbounded(r goclaw.RateRequest) bool { return r.RequestsPerMinute <= 0 && r.TokensPerMinute <= 0 }

// FullBucket is the bucket of a provider that nothing was taken from yet.
func FullBucket(r goclaw.RateRequest) Bucket {
	return Bucket{Requests: float64(r.RequestsPerMinute), Tokens: float64(r.TokensPerMinute), At: r.Now}
}

// Take takes r from the bucket, or returns when it could be taken at the
// earliest; the bucket is unchanged then. More tokens than the bucket can hold
// are taken once it is full, and leave a debt.
func (b Bucket) Take(r goclaw.RateRequest) (Bucket, goclaw.Millis) {
	b = b.fill(r)
	need := min(float64(r.Tokens), float64(r.TokensPerMinute))
	at := max(until(b, b.Requests, 1, r.RequestsPerMinute), until(b, b.Tokens, need, r.TokensPerMinute))
	if at > 0 {
		return b, at
	}
	if r.RequestsPerMinute > 0 {
		b.Requests--
	}
	if r.TokensPerMinute > 0 {
		b.Tokens -= float64(r.Tokens)
	}
	return b, 0
}

// Give puts tokens back that were taken and not used, or takes those that were
// used beyond it.
func (b Bucket) Give(r goclaw.RateRequest) Bucket {
	b = b.fill(r)
	if r.TokensPerMinute > 0 {
		b.Tokens = min(b.Tokens+float64(r.Tokens), float64(r.TokensPerMinute))
	}
	return b
}

// fill brings the bucket to r.Now. A clock that goes back fills nothing, and
// what has no bound now stays as it is.
func (b Bucket) fill(r goclaw.RateRequest) Bucket {
	passed := float64(max(0, r.Now-b.At)) / 60_000
	b.At = max(b.At, r.Now)
	if most := float64(r.RequestsPerMinute); most > 0 {
		b.Requests = min(most, b.Requests+most*passed)
	}
	if most := float64(r.TokensPerMinute); most > 0 {
		b.Tokens = min(most, b.Tokens+most*passed)
	}
	return b
}

// until returns when level reaches need, 0 if it does now.
func until(b Bucket, level, need float64, perMinute int) goclaw.Millis {
	const rounding = 1e-6
	if perMinute <= 0 || level >= need-rounding {
		return 0
	}
	return b.At + goclaw.Millis(max(1, math.Ceil((need-rounding/2-level)*60_000/float64(perMinute))))
}
