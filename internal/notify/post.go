package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

const (
	// postTimeout limits one attempt, including reading the response.
	postTimeout = 10 * time.Second
	// maxAnswer limits the bytes read of a response, which are discarded.
	maxAnswer = 64 << 10
	// maxURL limits the bytes read of a URL file.
	maxURL = 16 << 10
)

// failedError is why an attempt failed. It contains nothing of the URL but the
// host. It never quotes errors of services, because they may contain the URL or
// the response.
type failedError struct {
	why string
	// passes is true if a retry may succeed. after is the minimum time until
	// then.
	passes bool
	after  time.Duration
}

func (f *failedError) Error() string { return f.why }

// client returns the HTTP client for receivers. It uses the proxy of the
// environment and follows no redirects.
func client() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// doer adapts a function to types.HTTPClient.
type doer func(*http.Request) (*http.Response, error)

// Do calls d.
func (d doer) Do(request *http.Request) (*http.Response, error) { return d(request) }

// post makes one attempt to send text to receiver.
func post(ctx context.Context, by *http.Client, receiver Receiver, text string) *failedError {
	raw, failed := receiver.address()
	if failed != nil {
		return failed
	}
	to, err := locate(raw)
	if err != nil {
		return &failedError{why: "its URL " + err.Error(), passes: receiver.URLFile != ""}
	}
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	var outcome *failedError
	to.SetHTTPClient(doer(func(request *http.Request) (*http.Response, error) {
		response, err := by.Do(request.WithContext(ctx)) //nolint:gosec // the administrator configures the URL
		if err != nil {
			outcome = unanswered(err)
			return nil, outcome
		}
		outcome = answered(response)
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
		return response, nil
	}))
	err = to.Send(text, &types.Params{})
	switch {
	case outcome != nil:
		return outcome
	case ctx.Err() != nil:
		return unanswered(ctx.Err())
	case err != nil:
		return &failedError{why: fmt.Sprintf("%s did not take the report; see to the token and the channel in its URL", to.GetID())}
	}
	return nil
}

// address returns the current URL of r.
func (r Receiver) address() (string, *failedError) {
	if r.URLFile == "" {
		return r.URL, nil
	}
	file, err := os.Open(r.URLFile)
	if err != nil {
		return "", &failedError{why: fmt.Sprintf("its URL cannot be read: %v", err), passes: true}
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxURL))
	if err != nil {
		return "", &failedError{why: fmt.Sprintf("its URL cannot be read: %v", err), passes: true}
	}
	return strings.TrimSpace(string(content)), nil
}

func answered(response *http.Response) *failedError {
	status := response.StatusCode
	if status/100 == 2 {
		return nil
	}
	failed := &failedError{
		why:    fmt.Sprintf("it answered %d %s", status, http.StatusText(status)),
		passes: status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout,
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		failed.after = min(time.Duration(seconds)*time.Second, maxPause)
	}
	return failed
}

// unanswered describes why no response arrived. It only quotes errors that are
// known to contain nothing but host names.
func unanswered(err error) *failedError {
	var (
		lookup      *net.DNSError
		connection  *net.OpError
		certificate *tls.CertificateVerificationError
		host        x509.HostnameError
	)
	why := "the request failed"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("it did not answer within %s", postTimeout)
	case errors.As(err, &lookup):
		why = fmt.Sprintf("its host %s cannot be looked up", lookup.Name)
	case errors.As(err, &host), errors.As(err, &certificate):
		why = "its certificate is not trusted"
	case errors.As(err, &connection):
		why = connection.Error()
	}
	return &failedError{why: why, passes: true}
}
