package notify

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWebhookIsPostedToAsItsURLSays(t *testing.T) {
	for sentence, c := range map[string]struct {
		query              string // after the URL of the webhook
		method, uri, body  string
		header, headerWant string
	}{
		"as JSON, what it does not know being the receiver's": {
			"?of=us&token=a+b", http.MethodPost, "/hook?of=us&token=a+b", `{"message":"it changed"}`, "Content-Type", "application/json",
		},
		"a header": {
			"?@Authorization=Bearer+t", http.MethodPost, "/hook", `{"message":"it changed"}`, "Authorization", "Bearer t",
		},
		"a header without a hyphen": {
			"?@acceptLanguage=de", http.MethodPost, "/hook", `{"message":"it changed"}`, "Accept-Language", "de",
		},
		"a type of content that is asked for": {
			"?contenttype=application/x-ndjson", http.MethodPost, "/hook", `{"message":"it changed"}`, "Content-Type", "application/x-ndjson",
		},
		"fields, a title, and other names for them": {
			"?$cluster=blue&title=Blue&titlekey=subject&messagekey=text", http.MethodPost, "/hook",
			`{"cluster":"blue","subject":"Blue","text":"it changed"}`, "", "",
		},
		"an option's name that is the receiver's": {
			"?__title=theirs", http.MethodPost, "/hook?title=theirs", `{"message":"it changed"}`, "", "",
		},
		"names that are options only otherwise written": {
			"?Title=theirs&__of=us", http.MethodPost, "/hook?Title=theirs&__of=us", `{"message":"it changed"}`, "", "",
		},
		"by another method": {"?method=put", http.MethodPut, "/hook", `{"message":"it changed"}`, "", ""},
		"as text":           {"?template=", http.MethodPost, "/hook", "it changed", "Content-Type", "text/plain; charset=utf-8"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got *http.Request
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = r
				body, _ = io.ReadAll(r.Body)
			}))
			defer server.Close()
			require.Nil(t, post(t.Context(), server.Client(), Receiver{URL: server.URL + "/hook" + c.query}, "it changed"))
			require.Equal(t, c.method, got.Method)
			require.Equal(t, c.uri, got.URL.RequestURI())
			require.Equal(t, c.body, string(body))
			require.Equal(t, c.headerWant, got.Header.Get(c.header))
		})
	}
}
