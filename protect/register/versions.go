package register

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/configmap"
)

// RegisteredConfigMap holds what is registered, in Headwater's own namespace.
const RegisteredConfigMap = "headwater-registered"

// Versions notes which objects are registered, and in which version. By it a
// leader knows what somebody did while nobody led from what is due because
// Headwater or its rules have changed. One goroutine uses it.
type Versions struct {
	Store  configmap.Store
	loaded bool
	// noted holds for each object its version and its owner; stored is what the
	// ConfigMap has of it.
	observed, stored map[string]string
}

func entryOf(kind, name string) string { return kind + "." + name }

// versionOf changes with the specification alone: labels and field managers are
// everybody's.
func versionOf(object metav1.Object) string {
	return fmt.Sprintf("%s/%d", object.GetUID(), object.GetGeneration())
}

func ownerOf(object metav1.Object) string {
	for _, owner := range object.GetOwnerReferences() {
		return string(owner.UID)
	}
	return "nobody"
}

// set has it that live is as it should be.
func (v *Versions) set(kind string, live metav1.Object) {
	v.observed[entryOf(kind, live.GetName())] = versionOf(live) + " " + ownerOf(live)
}

func (v *Versions) remove(kind, name string) { delete(v.observed, entryOf(kind, name)) }

// deleted reports whether desired was there before and is not any more. What
// belonged to another owner went with that.
func (v *Versions) deleted(kind string, desired metav1.Object) bool {
	_, owner, _ := strings.Cut(v.observed[entryOf(kind, desired.GetName())], " ")
	return owner == ownerOf(desired)
}

// changed reports whether found is not what was noted of it.
func (v *Versions) changed(kind string, found metav1.Object) bool {
	version, _, known := strings.Cut(v.observed[entryOf(kind, found.GetName())], " ")
	return known && version != versionOf(found)
}

// load reads what an earlier leader has noted, once. Without the permission it
// has noted nothing.
func (v *Versions) load(ctx context.Context) error {
	if v.loaded {
		return nil
	}
	stored, err := v.Store.Read(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	v.observed, v.stored, v.loaded = map[string]string{}, map[string]string{}, true
	maps.Copy(v.observed, stored)
	maps.Copy(v.stored, stored)
	return nil
}

// save writes what is noted where that differs from what is stored.
func (v *Versions) save(ctx context.Context) error {
	if maps.Equal(v.observed, v.stored) {
		return nil
	}
	saved := maps.Clone(v.observed)
	if err := v.Store.Write(ctx, saved); err != nil {
		return err
	}
	v.stored = saved
	return nil
}
