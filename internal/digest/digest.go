// Package digest computes keyed digests of Secret and ConfigMap values.
//
// In: values. Out: short opaque sums. Readers of a plain hash can guess a secret that
// has little entropy. So every sum is an HMAC-SHA256, truncated to 128 bits, under a
// key that stays in Headwater's own namespace. The package is pure: it reads no
// clock, no random source and no cluster.
package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"sync"
)

// KeySize is the length in bytes of a digest key.
const KeySize = 32

// Sum is the keyed digest of one value or of several sums.
type Sum [16]byte

// String returns the sum in lower-case hexadecimal.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Hasher computes sums under one key. It is safe for concurrent use.
type Hasher struct {
	id string
	// macs holds HMACs under the key, of which each is used for many sums.
	macs sync.Pool
}

// New returns a Hasher for key, which must be KeySize bytes.
func New(key []byte) (*Hasher, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("digest key has %d bytes, want %d", len(key), KeySize)
	}
	key = slices.Clone(key)
	h := &Hasher{macs: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
	id := h.Of("key-id")
	h.id = hex.EncodeToString(id[:4])
	return h, nil
}

// ID names the key without revealing it: sums made under different IDs cannot
// be compared.
func (h *Hasher) ID() string { return h.id }

// Of returns the digest of parts under the given domain. Parts are
// length-prefixed, so ("ab", "c") and ("a", "bc") differ, and the domain keeps
// sums made for one purpose from matching those made for another.
func (h *Hasher) Of(domain string, parts ...[]byte) Sum {
	mac, _ := h.macs.Get().(hash.Hash)
	defer h.macs.Put(mac)
	mac.Reset()
	write := func(part []byte) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		mac.Write(length[:])
		mac.Write(part)
	}
	write([]byte(domain))
	for _, part := range parts {
		write(part)
	}
	var whole [sha256.Size]byte
	return Sum(mac.Sum(whole[:0])[:len(Sum{})])
}
