package notify

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/generic"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/standard"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// webhook posts to any URL. It supports the options of the library's generic
// service. That service also supports templates, and with them the linker keeps
// every method of every type, which makes the binary half as large again.
type webhook struct {
	standard.Standard

	client types.HTTPClient
	config *generic.Config
	// headers and fields are the options with the prefixes @ and $. fields are
	// added to the JSON of the message.
	headers http.Header
	fields  map[string]string
}

// optionError describes which values an option of a webhook's URL can have. It
// does not quote the value, which may be a misplaced token.
type optionError struct{ option, may string }

func (o optionError) Error() string { return o.option + " " + o.may }

// GetID implements types.Service.
func (*webhook) GetID() string { return generic.Scheme }

// SetHTTPClient implements types.HTTPClientSetter.
func (w *webhook) SetHTTPClient(client types.HTTPClient) { w.client = client }

// Initialize implements types.Service.
func (w *webhook) Initialize(at *url.URL, _ types.StdLogger) error {
	w.headers, w.fields = http.Header{}, map[string]string{}
	for key, values := range at.Query() {
		if name, is := strings.CutPrefix(key, "@"); is && name != "" {
			w.headers.Set(hyphenated(name), values[0])
		} else if name, is := strings.CutPrefix(key, "$"); is && name != "" {
			w.fields[name] = values[0]
		}
	}
	w.config, _ = generic.DefaultConfig()
	if err := w.config.SetURL(at); err != nil {
		return err
	}
	if w.config.Template != "" && !w.asJSON() {
		return optionError{"template", "may be json, or left out"}
	}
	w.config.RequestMethod = strings.ToUpper(w.config.RequestMethod)
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, w.config.RequestMethod) {
		return optionError{"method", "may be POST, PUT or PATCH"}
	}
	return nil
}

// asJSON is false if only the text of the message is sent.
func (w *webhook) asJSON() bool { return strings.EqualFold(w.config.Template, generic.JSONTemplate) }

var humps = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// hyphenated converts the name of a header, which may be written like
// acceptLanguage.
func hyphenated(name string) string { return humps.ReplaceAllString(name, "$1-$2") }

// Send implements types.Sender.
func (w *webhook) Send(message string, _ *types.Params) error {
	body, contentType, err := w.body(message)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(w.config.RequestMethod, w.config.WebhookURL().String(), bytes.NewReader(body)) //nolint:noctx // the client that was set has one
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
	if !w.asJSON() {
		return []byte(message), "text/plain; charset=utf-8", nil
	}
	fields := maps.Clone(w.fields)
	fields[w.config.MessageKey] = message
	if w.config.Title != "" {
		fields[w.config.TitleKey] = w.config.Title
	}
	body, err = json.Marshal(fields)
	return body, w.config.ContentType, err
}
