package canary

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACanaryIsFoundInWhateverForm(t *testing.T) {
	for shift := range 7 {
		value := strings.Repeat("v", shift+1)
		for form, encode := range map[string]func([]byte) string{
			"as it is":          func(v []byte) string { return string(v) },
			"quoted":            func(v []byte) string { return fmt.Sprintf("%q", v) },
			"in JSON":           func(v []byte) string { text, _ := json.Marshal(map[string]string{"k": string(v)}); return string(text) },
			"in a URL":          func(v []byte) string { return url.QueryEscape("<" + string(v) + ">") },
			"in base64":         base64.StdEncoding.EncodeToString,
			"in base64 of URLs": base64.RawURLEncoding.EncodeToString,
			"in a Secret":       func(v []byte) string { text, _ := json.Marshal(map[string][]byte{"k": v}); return string(text) },
			"in base64, twice": func(v []byte) string {
				return base64.StdEncoding.EncodeToString([]byte(`{"k":"` + string(v) + `"}`))
			},
			"in hexadecimal":       hex.EncodeToString,
			"in upper hexadecimal": func(v []byte) string { return fmt.Sprintf("%X", v) },
			"as numbers of a hash": func(v []byte) string { return fmt.Sprintf("%x", sha256.Sum256(v)) },
			"as a hash in base64": func(v []byte) string {
				sum := sha256.Sum256(v)
				return base64.StdEncoding.EncodeToString(sum[:])
			},
			"cut off":  func(v []byte) string { return string(v[:len(v)-4]) },
			"at bytes": func(v []byte) string { return "x\x00" + string(v) + "\xff" },
		} {
			cage := NewCage()
			planted := cage.Plant("TestX", []byte(value))
			cage.Search("the log", []byte("before "+encode(planted)+" after"))
			finds := strings.Join(cage.Finds(), "\n")
			require.Contains(t, finds, "the log holds a value of ", "%s, shifted by %d", form, shift)
			require.NotContains(t, finds, string(planted))
			require.Empty(t, cage.Finds(), "once")
		}
	}
}

func TestNothingElseIsFound(t *testing.T) {
	cage, other := NewCage(), NewCage()
	cage.Plant("TestX", []byte("old"))
	sum := sha256.Sum256([]byte("old"))
	cage.Search("the log", []byte("old new "+hex.EncodeToString(sum[:])+" "+string(other.Plant("TestY", []byte("old")))))
	require.Empty(t, cage.Finds())
}

func TestEqualValuesStayEqual(t *testing.T) {
	cage := NewCage()
	first, second := cage.Plant("TestX", []byte("v")), cage.Plant("TestY", []byte("v"))
	require.Equal(t, first, second)
	require.NotEqual(t, first, cage.Plant("TestX", []byte("w")))
	require.Equal(t, first, cage.Plant("TestX", first), "planted once")
	require.Equal(t, "v", string(cage.Strip(first)))
	require.Equal(t, "plain", string(cage.Strip([]byte("plain"))))
	require.Empty(t, cage.Plant("TestX", nil))
}

func TestACanaryBetweenTwoReadsIsFound(t *testing.T) {
	cage := NewCage()
	text := "before " + string(cage.Plant("TestX", []byte("v"))) + " after"
	for size := 1; size < len(text); size++ {
		reader := cage.Reader("the stream", io.NopCloser(strings.NewReader(text)))
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{reader}, make([]byte, size))
		require.NoError(t, err)
		require.NotEmpty(t, cage.Finds(), size)
		clear(cage.known)
	}
}

// echo keeps the body of the last write of a Secret, and answers with it.
func echo(t *testing.T, last *[]byte) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) > 0 {
			*last = body
		}
		switch {
		case r.URL.Query().Get("watch") != "":
			_, _ = fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%s}\n{\"type\":\"MODIFIED\",\"object\":%s}\n", *last, *last)
		case strings.HasSuffix(r.URL.Path, "/secrets") && r.Method == http.MethodGet:
			_, _ = fmt.Fprintf(w, `{"kind":"SecretList","items":[%s]}`, *last)
		case strings.Contains(r.URL.Path, "refused"):
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(*last)
		default:
			_, _ = w.Write(*last)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestTestsSeeWhatTheyWrote(t *testing.T) {
	var stored []byte
	server, cage := echo(t, &stored), NewCage()
	client := &http.Client{Transport: cage.Transport("TestX", "own", http.DefaultTransport)}
	send := func(method, path, body string) string {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, bytes.NewBufferString(body))
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return string(answer)
	}
	const secret = `{"data":{"empty":"","k":"dg==","none":null},"kind":"Secret","metadata":{"generation":12345678901234567}}`
	require.JSONEq(t, secret, send(http.MethodPost, "/api/v1/namespaces/a/secrets", secret))
	require.NotContains(t, string(stored), `"dg=="`)
	require.Contains(t, string(stored), "12345678901234567")
	require.JSONEq(t, secret, send(http.MethodGet, "/api/v1/namespaces/a/secrets/x", ""))
	require.JSONEq(t, `{"kind":"SecretList","items":[`+secret+`]}`, send(http.MethodGet, "/api/v1/secrets", ""))
	require.Equal(t, 2, strings.Count(send(http.MethodGet, "/api/v1/secrets?watch=true", ""), `"k":"dg=="`))
	require.Empty(t, cage.Finds(), "a Secret may hold its values")

	send(http.MethodPatch, "/api/v1/namespaces/a/secrets/refused", `{"stringData":{"k":"v"}}`)
	require.NotContains(t, string(stored), `"v"`)
	require.Len(t, cage.Finds(), 1, "what a refusal says is no Secret")
	send(http.MethodGet, "/api/v1/namespaces/a/events", "")
	require.Len(t, cage.Finds(), 1)

	for path, body := range map[string]string{
		"/api/v1/namespaces/own/secrets":   secret,
		"/api/v1/namespaces/a/secrets":     `{"type":"kubernetes.io/dockercfg","data":{".dockercfg":"e30="}}`,
		"/api/v1/namespaces/a/secrets/x":   `[{"op":"remove","path":"/data/k"}]`,
		"/api/v1/namespaces/a/configmaps":  `{"data":{"k":"v"}}`,
		"/api/v1/namespaces/secrets/pods":  `{"data":{"k":"dg=="}}`,
		"/api/v1/namespaces/a/secrets/x/y": secret,
	} {
		send(http.MethodPost, path, body)
		require.JSONEq(t, body, string(stored), path)
	}
}
