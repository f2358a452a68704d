package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// Edition is an object as it was from Revision on, until its next Edition.
type Edition struct {
	// Revision is its resourceVersion. It orders the editions of all objects.
	Revision int64
	// Namespace and Name are the object's.
	Namespace, Name string
	// Object is of the client's own types; nil: it is deleted.
	Object runtime.Object
	// Resource is its plural, such as secrets.
	Resource string
}

// History is every edition of every namespaced object of these resources from
// revision from on, in order, and the revision to go on from. It comes from
// etcd, so that nothing is missing: also not what was written and written over
// while no API server could be asked. It reaches back to the last CompactEtcd.
// What Damage stored is no edition: other tests have the cluster afterwards.
func (c *Cluster) History(ctx context.Context, from int64, resources ...string) (editions []Edition, next int64, err error) {
	next, err = c.written(ctx, from, func(event watchEvent) error {
		edition, wanted, err := event.edition(resources)
		if wanted {
			editions = append(editions, edition)
		}
		return err
	})
	if err != nil {
		return nil, from, err
	}
	return editions, next, nil
}

// Write is one write to etcd.
type Write struct {
	Revision int64
	Key      string
	// Value is as the API server stores it; empty: it is deleted.
	Value []byte
}

// Writes calls see for all that was written from revision from on, of whatever
// kind, and returns the revision to go on from. What was compacted away meanwhile
// is left out.
func (c *Cluster) Writes(ctx context.Context, from int64, see func(Write)) (next int64, err error) {
	seen := func(event watchEvent) error {
		see(Write{event.KV.ModRevision, string(event.KV.Key), event.KV.Value})
		return nil
	}
	next, err = c.written(ctx, from, seen)
	if compacted := (compactedError{}); errors.As(err, &compacted) {
		next, err = c.written(ctx, compacted.first, seen)
	}
	return next, err
}

// compactedError says that there is nothing from before the revision first.
type compactedError struct{ first int64 }

func (e compactedError) Error() string {
	return fmt.Sprintf("read the history: etcd has it from revision %d on alone", e.first)
}

// written calls see for every event from revision from on.
func (c *Cluster) written(ctx context.Context, from int64, see func(watchEvent) error) (next int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watch
	now, err := c.revision(ctx)
	if err != nil || now < from {
		return from, err
	}
	// Every key there is, so that the last revision is among them.
	body, err := c.askEtcd(ctx, "watch", fmt.Sprintf(`{"create_request":{"key":"AA==","range_end":"AA==","start_revision":"%d"}}`, from))
	if err != nil {
		return from, err
	}
	defer func() { _ = body.Close() }()
	for decoder := json.NewDecoder(body); ; {
		var message struct{ Result watchResponse }
		if err := decoder.Decode(&message); err != nil {
			return from, fmt.Errorf("read the history: %w", err)
		}
		if message.Result.Canceled {
			return from, compactedError{message.Result.CompactRevision}
		}
		for _, event := range message.Result.Events {
			if event.KV.ModRevision > now {
				return now + 1, nil
			}
			if err := see(event); err != nil {
				return from, err
			}
			next = event.KV.ModRevision + 1
		}
		if next > now {
			return next, nil
		}
	}
}

// revision is etcd's latest.
func (c *Cluster) revision(ctx context.Context) (int64, error) {
	body, err := c.askEtcd(ctx, "kv/range", `{"key":"AA==","count_only":true}`)
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	var answer struct {
		Header struct {
			Revision int64 `json:",string"`
		}
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return 0, fmt.Errorf("ask etcd for its revision: %w", err)
	}
	return answer.Header.Revision, nil
}

// CompactEtcd has etcd forget every edition but the latest, and returns once it
// has. History reaches back to now from then on.
func (c *Cluster) CompactEtcd(ctx context.Context) error {
	now, err := c.revision(ctx)
	if err != nil {
		return err
	}
	body, err := c.askEtcd(ctx, "kv/compaction", fmt.Sprintf(`{"revision":"%d","physical":true}`, now))
	if err != nil && strings.Contains(err.Error(), alreadyCompacted) {
		return nil
	}
	if err != nil {
		return err
	}
	return body.Close()
}

// alreadyCompacted is etcd's own word for that nothing was written since.
const alreadyCompacted = "required revision has been compacted"

// EtcdMetrics returns everything that etcd's /metrics says.
func (c *Cluster) EtcdMetrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address(c.ports.etcd)+"/metrics", nil)
	if err != nil {
		return "", fmt.Errorf("ask etcd: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("ask etcd for its metrics: %s", response.Status)
	}
	return string(content), err
}

func (c *Cluster) askEtcd(ctx context.Context, what, question string) (io.ReadCloser, error) {
	url := "http://" + address(c.ports.etcd) + "/v3/" + what
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(question))
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		says, _ := io.ReadAll(response.Body)
		return nil, fmt.Errorf("ask etcd for %s: %s: %s", what, response.Status, says)
	}
	return response.Body, nil
}

// watchResponse is what we use of etcd's, as its JSON gateway writes it.
type watchResponse struct {
	Canceled        bool
	CompactRevision int64 `json:"compact_revision,string"`
	Events          []watchEvent
}

type watchEvent struct {
	Type string // empty is a PUT
	KV   struct {
		Key, Value  []byte
		ModRevision int64 `json:"mod_revision,string"`
	}
}

// edition reads an event about an object of resources. The API server's keys
// are /registry/RESOURCE/NAMESPACE/NAME.
func (e watchEvent) edition(resources []string) (edition Edition, wanted bool, err error) {
	if bytes.Equal(e.KV.Value, damaged) {
		return edition, false, nil
	}
	for _, resource := range resources {
		path, found := strings.CutPrefix(string(e.KV.Key), "/registry/"+resource+"/")
		if !found {
			continue
		}
		edition = Edition{Revision: e.KV.ModRevision, Resource: resource}
		edition.Namespace, edition.Name, _ = strings.Cut(path, "/")
		if e.Type == "DELETE" {
			return edition, true, nil
		}
		edition.Object, _, err = scheme.Codecs.UniversalDeserializer().Decode(e.KV.Value, nil, nil)
		if err != nil {
			return edition, true, fmt.Errorf("read the history of %s %s: %w", resource, path, err)
		}
		return edition, true, nil
	}
	return edition, false, nil
}
