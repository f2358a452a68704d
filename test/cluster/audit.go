package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// auditPolicy logs every request once: a watch when it starts, since it need not
// end, all else when it is done. It leaves out nothing but reads by the control
// plane's own processes; their controllers are users of their own, and logged.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
  verbs: [get, list, watch]
- level: Metadata
  verbs: [watch]
  omitStages: [RequestReceived, ResponseComplete]
- level: Metadata
  omitStages: [RequestReceived, ResponseStarted]
`

// Request is one request to the API server, as its audit log tells it.
type Request struct {
	Time        time.Time // when it arrived
	Done        time.Time // when it was answered, or a watch began
	Verb        string    // get, list, watch, create, update, patch, delete, deletecollection
	Group       string    // of the API; empty for the core
	Resource    string    // empty for paths such as /readyz
	Subresource string
	Namespace   string
	Name        string
	User        string // in whose name it was done, so the impersonated user where there is one
	UserAgent   string
	Source      string // the address that it came from
	URI         string // with the query: a list that says resourceVersion=0 may come from the cache
	Code        int
	Annotations map[string]string // by authorization, admission webhooks and policies
}

// IsWrite says whether the request was to change something. A filter for Requests.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Mark is a moment in the life of a cluster.
type Mark int64

// Mark is now: Since gives the requests from here on.
func (c *Cluster) Mark() Mark {
	info, err := os.Stat(c.path(auditLogFile))
	if err != nil {
		return 0
	}
	return Mark(info.Size())
}

// Requests are all requests so far that filter takes, in the order in which they
// were done. Without a filter these are all.
//
// A request is there once its client has read the response to the end.
func (c *Cluster) Requests(ctx context.Context, filter func(Request) bool) ([]Request, error) {
	return c.Since(ctx, 0, filter)
}

// Since is Requests without those from before mark.
func (c *Cluster) Since(ctx context.Context, mark Mark, filter func(Request) bool) ([]Request, error) {
	log, err := os.Open(c.path(auditLogFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = log.Close() }()
	if _, err := log.Seek(max(int64(mark)-1, 0), io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	reader := bufio.NewReader(log)
	if mark > 0 { // the mark may be within a line that was being written
		if _, err := reader.ReadBytes('\n'); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
	}
	return readRequests(ctx, reader, filter)
}

func readRequests(ctx context.Context, log *bufio.Reader, filter func(Request) bool) ([]Request, error) {
	var requests []Request
	for ctx.Err() == nil {
		line, err := log.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// What comes after the last line's end is still being written.
			return requests, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		request, err := parseRequest(line)
		if err != nil {
			return nil, err
		}
		if filter == nil || filter(request) {
			requests = append(requests, request)
		}
	}
	return nil, fmt.Errorf("read the audit log: %w", ctx.Err())
}

// auditEvent is what we use of audit.k8s.io/v1, Event.
type auditEvent struct {
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
	Verb                     string
	RequestURI               string
	UserAgent                string
	SourceIPs                []string
	User                     struct{ Username string }
	ImpersonatedUser         *struct{ Username string }
	ResponseStatus           struct{ Code int }
	ObjectRef                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Annotations              map[string]string
}

func parseRequest(line []byte) (Request, error) {
	var event auditEvent
	if err := json.Unmarshal(bytes.TrimSpace(line), &event); err != nil {
		return Request{}, fmt.Errorf("read the audit log: %w", err)
	}
	user := event.User.Username
	if event.ImpersonatedUser != nil {
		user = event.ImpersonatedUser.Username
	}
	source := ""
	if len(event.SourceIPs) > 0 {
		source = event.SourceIPs[0]
	}
	return Request{
		Source:      source,
		Time:        event.RequestReceivedTimestamp,
		Done:        event.StageTimestamp,
		Verb:        event.Verb,
		Group:       event.ObjectRef.APIGroup,
		Resource:    event.ObjectRef.Resource,
		Subresource: event.ObjectRef.Subresource,
		Namespace:   event.ObjectRef.Namespace,
		Name:        event.ObjectRef.Name,
		User:        user,
		UserAgent:   event.UserAgent,
		URI:         event.RequestURI,
		Code:        event.ResponseStatus.Code,
		Annotations: event.Annotations,
	}, nil
}
