package providertest

import (
	"bytes"
	"hash/fnv"
	"sync"
)

const (
	cacheBlock = 512     // bytes: 128 tokens, as OpenAI's prefix cache counts
	cacheLimit = 1 << 18 // blocks remembered before the cache is emptied
)

// prefixCache simulates a provider's prompt cache: a prefix of tools, system
// and messages is cached once it was sent, in whole blocks.
type prefixCache struct {
	mu   sync.Mutex
	seen map[uint64]struct{}
}

// use returns how many tokens of r were cached, and how many of it are now. A
// nil cache caches nothing.
func (c *prefixCache) use(r *Request) (read, written int64) {
	if c == nil {
		return 0, 0
	}
	// Breakpoints move; they are no part of what is cached.
	mark := []byte(`"cache_control":{"type":"ephemeral"}`)
	marked := r.Wire == WireAnthropic && bytes.Contains(r.Raw, mark)
	prefix := bytes.ReplaceAll(r.prefix, append(mark[:len(mark):len(mark)], ','), nil)
	prefix = bytes.ReplaceAll(prefix, append([]byte{','}, mark...), nil)

	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) > cacheLimit {
		clear(c.seen)
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(r.Wire + " " + r.Model + " ")) // a hash never fails
	hit := true
	var blocks int64
	for len(prefix) >= cacheBlock {
		_, _ = sum.Write(prefix[:cacheBlock])
		prefix = prefix[cacheBlock:]
		key := sum.Sum64()
		if _, ok := c.seen[key]; !ok {
			hit = false
			c.seen[key] = struct{}{}
		}
		if hit {
			read++
		}
		blocks++
	}
	if marked {
		written = (blocks - read) * cacheBlock / 4
	}
	return read * cacheBlock / 4, written
}
