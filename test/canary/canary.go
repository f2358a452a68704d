// Package canary makes the values of Secrets recognisable, and finds them again
// wherever they should not be.
//
// What a test writes as a value gets a tail, which the test itself never sees:
// clients that go through Transport put it on and take it off. Whatever else is
// read is searched for it, also as base64, in hexadecimal, and as a plain hash.
package canary

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
)

const (
	markSize = 8
	sumSize  = 8
	// tailSize is that of a mark and a sum, in hexadecimal.
	tailSize = 2 * (markSize + sumSize)
)

// Cage is where the canaries of one process are kept. It may be used
// concurrently.
type Cage struct {
	// mark begins every tail, and is another one in each run.
	mark  string
	key   []byte
	forms map[string]string

	mu sync.Mutex
	// owners say whose a tail is, and digests whose a plain hash.
	owners, digests map[string]string
	// finds are what was found and not told yet, each once.
	finds []string
	known map[string]bool
}

// NewCage returns an empty Cage.
func NewCage() *Cage {
	random := make([]byte, markSize+sha256.Size)
	_, _ = rand.Read(random) // it never fails
	c := &Cage{
		mark: hex.EncodeToString(random[:markSize]), key: random[markSize:],
		owners: map[string]string{}, digests: map[string]string{}, known: map[string]bool{},
	}
	c.forms = formsOf(c.mark)
	return c
}

// formsOf returns how mark looks in text, by what it is written as.
func formsOf(mark string) map[string]string {
	forms := map[string]string{
		"as it is": mark, "in upper case": strings.ToUpper(mark),
		"in hexadecimal": hex.EncodeToString([]byte(mark)), "in upper hexadecimal": strings.ToUpper(hex.EncodeToString([]byte(mark))),
	}
	for shift := range 3 { // what comes before it in the value shifts it
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + mark))
		// Characters at both ends also depend on what is beside the mark.
		forms[fmt.Sprintf("in base64, shifted by %d", shift)] = encoded[2*shift-shift/2 : len(encoded)-2]
	}
	return forms
}

// Plant returns value with its tail. Equal values get the same tail, also from
// different owners, so that they stay equal. Messages name the owner. An empty value
// stays empty.
func (c *Cage) Plant(owner string, value []byte) []byte {
	if len(value) == 0 || bytes.HasSuffix(value, []byte(c.tail(c.Strip(value)))) {
		return value
	}
	tail := c.tail(value)
	planted := append(bytes.Clone(value), tail...)
	sum := sha256.Sum256(planted)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.owners[tail]; !known {
		c.owners[tail] = owner
		c.digests[hex.EncodeToString(sum[:])] = owner
		c.digests[base64.RawStdEncoding.EncodeToString(sum[:])] = owner
		c.digests[base64.RawURLEncoding.EncodeToString(sum[:])] = owner
	}
	return planted
}

// Strip is the inverse of Plant; what was not planted stays.
func (c *Cage) Strip(value []byte) []byte {
	if len(value) <= tailSize {
		return value
	}
	plain, tail := value[:len(value)-tailSize], value[len(value)-tailSize:]
	if string(tail) != c.tail(plain) {
		return value
	}
	return plain
}

func (c *Cage) tail(value []byte) string {
	mac := hmac.New(sha256.New, c.key)
	mac.Write(value)
	return c.mark + hex.EncodeToString(mac.Sum(nil)[:sumSize])
}

// sums are the ways to write a plain SHA-256: in how many of which characters.
var sums = []struct {
	size       int
	characters [256]bool
}{
	{64, oneOf("0123456789abcdefABCDEF")},
	{43, oneOf("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/-_")},
}

func oneOf(characters string) (is [256]bool) {
	for _, c := range []byte(characters) {
		is[c] = true
	}
	return is
}

// sumsIn yields what could be a plain SHA-256: both ends of each run of
// characters that is long enough. No regular expression, which would take most
// of the time of the tests that are searched.
func sumsIn(text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, sum := range sums {
			for begin := 0; begin < len(text); begin++ {
				end := begin
				for end < len(text) && sum.characters[text[end]] {
					end++
				}
				if end-begin >= sum.size &&
					(!yield(string(text[begin:begin+sum.size])) || !yield(string(text[end-sum.size:end]))) {
					return
				}
				begin = end
			}
		}
	}
}

// Search notes the canaries that are in text, which came from place.
func (c *Cage) Search(place string, text []byte) {
	for form, mark := range c.forms {
		if at := bytes.Index(text, []byte(mark)); at >= 0 {
			c.note(place, form, c.ownerAt(text[at:]))
		}
	}
	for sum := range sumsIn(text) {
		if owner, found := c.ownerOf(sum); found {
			c.note(place, "as a plain hash", owner)
		}
	}
}

func (c *Cage) ownerAt(text []byte) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner, known := c.owners[string(text[:min(tailSize, len(text))])]; known {
		return owner
	}
	return "some Secret"
}

func (c *Cage) ownerOf(sum string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, written := range []string{sum, strings.ToLower(sum)} {
		if owner, known := c.digests[written]; known {
			return owner, true
		}
	}
	return "", false
}

func (c *Cage) note(place, form, owner string) {
	find := fmt.Sprintf("%s holds a value of %s, %s", place, owner, form)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known[find] {
		c.known[find] = true
		c.finds = append(c.finds, find)
	}
}

// Finds returns what was found since it was asked last.
func (c *Cage) Finds() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	finds := c.finds
	c.finds = nil
	return finds
}

// overlap is more than any form of a canary takes up.
const overlap = 256

// Reader searches what is read through it, as it is read.
func (c *Cage) Reader(place string, from io.ReadCloser) io.ReadCloser {
	return &searching{cage: c, place: place, from: from}
}

type searching struct {
	cage  *Cage
	place string
	from  io.ReadCloser
	last  []byte
}

func (s *searching) Read(into []byte) (int, error) {
	n, err := s.from.Read(into)
	if n > 0 {
		s.last = append(s.last, into[:n]...)
		s.cage.Search(s.place, s.last)
		s.last = bytes.Clone(s.last[max(0, len(s.last)-overlap):])
	}
	return n, err
}

func (s *searching) Close() error { return s.from.Close() }
