package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/format"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/standard"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// webhookScheme names the service of any webhook, as the library does.
const webhookScheme = "generic"

// webhook posts to a URL of somebody's own. It takes the options of the
// library's service of that name, see
// https://shoutrrr.nickfedor.com/latest/services/specialized/generic/; that one
// can run templates, and a program that can keeps every method of every type
// that it has, which would be a third of this one.
type webhook struct {
	standard.Standard

	to      url.URL
	client  types.HTTPClient
	headers http.Header
	// fields go into the JSON beside the message.
	fields  map[string]string
	options webhookOptions
}

type webhookOptions struct {
	method, contentType         string
	messageKey, titleKey, title string
	asJSON                      bool // or the message alone
}

// GetID implements types.Service.
func (*webhook) GetID() string { return webhookScheme }

// SetHTTPClient implements types.HTTPClientSetter.
func (w *webhook) SetHTTPClient(client types.HTTPClient) { w.client = client }

// Initialize implements types.Service. What of the query is nothing to w is the
// receiver's, and what two underscores come before.
func (w *webhook) Initialize(at *url.URL, _ types.StdLogger) error {
	w.to, w.headers, w.fields = *at, http.Header{}, map[string]string{}
	w.to.Scheme = "https"
	w.options = webhookOptions{method: http.MethodPost, contentType: "application/json", messageKey: "message", titleKey: "title"}
	theirs := url.Values{}
	for key, values := range at.Query() {
		if name, escaped := strings.CutPrefix(key, "__"); escaped {
			theirs[name] = values
		} else if mine, err := w.take(key, values[0]); err != nil {
			return err
		} else if !mine {
			theirs[key] = values
		}
	}
	w.to.RawQuery = theirs.Encode()
	return nil
}

// take reports whether key is a header (@Authorization), a field ($cluster) or
// an option, and keeps it.
func (w *webhook) take(key, value string) (mine bool, err error) {
	if name, is := strings.CutPrefix(key, "@"); is && name != "" {
		w.headers.Set(hyphenated(name), value)
		return true, nil
	}
	if name, is := strings.CutPrefix(key, "$"); is && name != "" {
		w.fields[name] = value
		return true, nil
	}
	if strings.EqualFold(key, "disabletls") {
		if plain, _ := format.ParseBool(value, false); plain {
			w.to.Scheme = "http"
		}
		return true, nil
	}
	return w.options.take(key, value)
}

func (o *webhookOptions) take(key, value string) (mine bool, err error) {
	switch strings.ToLower(key) {
	case "template":
		if o.asJSON = strings.EqualFold(value, "json"); !o.asJSON && value != "" {
			err = fmt.Errorf("template %.20q: there is json, or none", value)
		}
	case "method":
		if o.method = strings.ToUpper(value); !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, o.method) {
			err = fmt.Errorf("method %.20q: there is POST, PUT and PATCH", value)
		}
	case "contenttype":
		o.contentType = value
	case "messagekey":
		o.messageKey = value
	case "titlekey":
		o.titleKey = value
	case "title":
		o.title = value
	default:
		return false, nil
	}
	return true, err
}

var humps = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// hyphenated is a name of a header that may be written as acceptLanguage.
func hyphenated(name string) string { return humps.ReplaceAllString(name, "$1-$2") }

// Send implements types.Sender.
func (w *webhook) Send(message string, _ *types.Params) error {
	body, contentType, err := w.body(message)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(w.options.method, w.to.String(), bytes.NewReader(body)) //nolint:noctx // the client that is set has one
	if err != nil {
		return err
	}
	request.Header = w.headers.Clone()
	if request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (w *webhook) body(message string) (body []byte, contentType string, err error) {
	if !w.options.asJSON {
		return []byte(message), "text/plain; charset=utf-8", nil
	}
	fields := maps.Clone(w.fields)
	fields[w.options.messageKey] = message
	if w.options.title != "" {
		fields[w.options.titleKey] = w.options.title
	}
	body, err = json.Marshal(fields)
	return body, w.options.contentType, err
}
