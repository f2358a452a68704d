package workload

import (
	"bytes"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// editedAt returns when another field manager last wrote an object of which it owns
// fields of the pod template at path, by the API server's clock in seconds since 1970; 0
// if none did. Writes of subresources, such as scale, do not count.
func editedAt(entries []metav1.ManagedFieldsEntry, path []string) (latest uint32) {
	if len(path) == 0 {
		return 0
	}
	field := []byte(`"f:` + path[len(path)-1] + `"`)
	for _, entry := range entries {
		theirs := entry.Manager != mark.FieldManager && entry.Subresource == "" && entry.Time != nil && entry.FieldsV1 != nil
		if theirs && bytes.Contains(entry.FieldsV1.GetRawBytes(), field) {
			latest = max(latest, seconds(entry.Time.Time))
		}
	}
	return latest
}

// Edited reports whether another field manager wrote the pod template after the last
// restart of w: the rollout in progress is then not Headwater's.
func (w *Workload) Edited() bool {
	restartedAt := mark.ParseTime(w.Annotations[mark.RestartedAt])
	return !restartedAt.IsZero() && int64(w.EditedAt) > restartedAt.Unix()
}

// EditedSince reports whether another field manager wrote the pod template at then or
// later, both by the API server's clock in whole seconds.
func (w *Workload) EditedSince(then time.Time) bool { return int64(w.EditedAt) >= then.Unix() }
