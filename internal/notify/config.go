package notify

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Receiver is a destination of reports: an entry of notify in the
// configuration.
type Receiver struct {
	// URL selects the service and the destination. It usually contains a token.
	URL string `json:"url,omitempty"`
	// URLFile is the path of a file with the URL, such as a key of a mounted
	// Secret. It is read for each report.
	URLFile string `json:"urlFile,omitempty"`
	// On are the topics to report.
	On []topic `json:"on,omitzero"`
}

// Default sets every omitted field to its default.
func (r *Receiver) Default() {
	if r.On == nil {
		r.On = byDefault()
	}
}

// Validate returns all problems of r. They never quote the URL. It does not
// read URLFile, because the configuration may be validated on another machine.
func (r Receiver) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case r.URL == "" && r.URLFile == "":
		errs = append(errs, field.Required(at.Child("url"), "say where to report, or name a file that does with urlFile"))
	case r.URL != "" && r.URLFile != "":
		errs = append(errs, field.Forbidden(at.Child("urlFile"), "a receiver has a url or a urlFile, not both; remove one"))
	case r.URLFile != "" && !filepath.IsAbs(r.URLFile):
		errs = append(errs, field.Invalid(at.Child("urlFile"), r.URLFile, "write the whole path, such as /etc/headwater-notify/url"))
	case r.URL != "":
		if _, err := locate(r.URL); err != nil {
			errs = append(errs, field.Forbidden(at.Child("url"), err.Error()))
		}
	}
	if len(r.On) == 0 {
		errs = append(errs, field.Forbidden(at.Child("on"), "would never report anything; name a topic, or remove it for the usual ones"))
	}
	for i, topic := range r.On {
		if slices.Contains(r.On[:i], topic) {
			errs = append(errs, field.Duplicate(at.Child("on").Index(i), topic))
		}
	}
	return errs
}

// SendsPasswordInClear reports whether the URL contains a user or password and
// uses plain HTTP.
func (r Receiver) SendsPasswordInClear() bool {
	at, err := url.Parse(strings.TrimSpace(r.URL))
	return err == nil && at.Scheme == "http" && at.User != nil
}

// ValidateAll returns all problems of receivers.
func ValidateAll(at *field.Path, receivers []Receiver) field.ErrorList {
	var errs field.ErrorList
	for i, receiver := range receivers {
		errs = append(errs, receiver.Validate(at.Index(i))...)
	}
	return errs
}

// name is the name of receiver i for the log, which must not contain its URL.
func name(i int) string { return fmt.Sprintf("notify[%d]", i) }
