package canary

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// secretPath is that of Secrets in the API, with their namespace.
var secretPath = regexp.MustCompile(`^/api/v1(?:/namespaces/([^/]+))?/secrets(?:/[^/]+)?$`)

// strict are types of Secrets whose values the API server reads.
var strict = []string{"kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg", "kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"}

// Transport plants a canary in every value of a Secret that is written through
// it, and takes it off what is read; anything else that comes back is searched.
// Secrets of the namespace except stay as they are. Owner says in messages whose
// values they are.
func (c *Cage) Transport(owner, except string, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		path := secretPath.FindStringSubmatch(request.URL.Path)
		secrets := path != nil && path[1] != except
		if secrets && request.Body != nil {
			var err error
			if request, err = c.planted(owner, request); err != nil {
				return nil, err
			}
		}
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		place := "the answer to " + request.Method + " " + request.URL.Path
		switch {
		case path != nil && !secrets:
		case secrets && response.StatusCode < http.StatusBadRequest:
			response.Body = &stripping{cage: c, place: place, lines: bufio.NewReader(response.Body), from: response.Body}
			response.ContentLength = -1
			response.Header.Del("Content-Length")
		default:
			response.Body = c.Reader(place, response.Body)
		}
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// planted is request with a canary in every value of its Secret. What is no
// JSON object, such as a JSON patch, stays.
func (c *Cage) planted(owner string, request *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(request.Body)
	if err := errors.Join(err, request.Body.Close()); err != nil {
		return nil, err
	}
	content := rewritten(body, func(secret map[string]any) {
		kind, _ := secret["type"].(string)
		if slices.Contains(strict, kind) {
			return
		}
		if data, ok := secret["data"].(map[string]any); ok {
			changeEach(data, func(value []byte) []byte { return c.Plant(owner, value) })
		}
		if texts, ok := secret["stringData"].(map[string]any); ok {
			for key, value := range texts {
				if text, ok := value.(string); ok {
					texts[key] = string(c.Plant(owner, []byte(text)))
				}
			}
		}
	})
	request = request.Clone(request.Context())
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return request, nil
}

// stripping takes the canaries off Secrets, lists of them and what a watch tells:
// each of these is one line of JSON.
type stripping struct {
	cage  *Cage
	place string
	lines *bufio.Reader
	from  io.Closer
	rest  []byte
	err   error
}

func (s *stripping) Read(into []byte) (int, error) {
	for len(s.rest) == 0 && s.err == nil {
		var line []byte
		line, s.err = s.lines.ReadBytes('\n')
		s.rest = rewritten(line, s.strip)
		s.cage.Search(s.place, s.rest)
	}
	if len(s.rest) == 0 {
		return 0, s.err
	}
	n := copy(into, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stripping) Close() error { return s.from.Close() }

func (s *stripping) strip(object map[string]any) {
	if data, ok := object["data"].(map[string]any); ok {
		changeEach(data, s.cage.Strip)
	}
	if inner, ok := object["object"].(map[string]any); ok { // of a watch
		s.strip(inner)
	}
	items, _ := object["items"].([]any)
	for _, item := range items {
		if secret, ok := item.(map[string]any); ok {
			s.strip(secret)
		}
	}
}

// rewritten is the JSON object raw after change; anything else stays as it is.
func rewritten(raw []byte, change func(map[string]any)) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	if decoder.Decode(&object) != nil || object == nil {
		return raw
	}
	change(object)
	changed, err := json.Marshal(object)
	if err != nil {
		return raw
	}
	if strings.HasSuffix(string(raw), "\n") {
		changed = append(changed, '\n')
	}
	return changed
}

// changeEach changes the values of a Secret's data, which are in base64.
func changeEach(data map[string]any, change func([]byte) []byte) {
	for key, value := range data {
		text, ok := value.(string)
		if !ok {
			continue
		}
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			data[key] = base64.StdEncoding.EncodeToString(change(plain))
		}
	}
}
