package workload

import (
	"bytes"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// EditedSince reports whether another field manager wrote the pod template at path
// after the last restart in annotations: the rollout in progress is then not
// Headwater's. It compares the times of the field managers that own fields of the
// template, in whole seconds.
func EditedSince(entries []metav1.ManagedFieldsEntry, annotations map[string]string, path []string) bool {
	restartedAt := mark.ParseTime(annotations[mark.RestartedAt])
	if restartedAt.IsZero() || len(path) == 0 {
		return false
	}
	field := []byte(`"f:` + path[len(path)-1] + `"`)
	for _, entry := range entries {
		theirs := entry.Manager != mark.FieldManager && entry.Subresource == "" && entry.Time != nil && entry.FieldsV1 != nil
		if theirs && entry.Time.After(restartedAt.Truncate(time.Second)) && bytes.Contains(entry.FieldsV1.GetRawBytes(), field) {
			return true
		}
	}
	return false
}
