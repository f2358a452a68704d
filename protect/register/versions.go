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

// RegisteredConfigMap is the ConfigMap, in Headwater's namespace, that stores
// the versions of the registered objects.
const RegisteredConfigMap = "headwater-registered"

// Versions stores which version of each object was registered. A new leader
// uses it to distinguish changes by other clients from changes that are due
// because Headwater or its rules changed. Only one goroutine may use it.
type Versions struct {
	Store  configmap.Store
	loaded bool
	// observed maps each object to its version and owner; stored is the content
	// of the ConfigMap.
	observed, stored map[string]string
}

func entryOf(kind, name string) string { return kind + "." + name }

// versionOf returns a version that changes only with the spec. Other clients
// may change labels.
func versionOf(object metav1.Object) string {
	return fmt.Sprintf("%s/%d", object.GetUID(), object.GetGeneration())
}

// nobody is what is stored in place of the UID of an owner.
const nobody = "nobody"

// hadOwner reports whether an object was registered that had an owner.
func (v *Versions) hadOwner() bool {
	for _, entry := range v.observed {
		if _, owner, _ := strings.Cut(entry, " "); owner != nobody {
			return true
		}
	}
	return false
}

func ownerOf(object metav1.Object) string {
	for _, owner := range object.GetOwnerReferences() {
		return string(owner.UID)
	}
	return nobody
}

// set stores the version of live, which is in the desired state.
func (v *Versions) set(kind string, live metav1.Object) {
	v.observed[entryOf(kind, live.GetName())] = versionOf(live) + " " + ownerOf(live)
}

func (v *Versions) remove(kind, name string) { delete(v.observed, entryOf(kind, name)) }

// deleted reports whether desired existed before and was deleted. It is false
// if the owner changed: the garbage collector then deleted the object together
// with the old owner.
func (v *Versions) deleted(kind string, desired metav1.Object) bool {
	_, owner, _ := strings.Cut(v.observed[entryOf(kind, desired.GetName())], " ")
	return owner == ownerOf(desired)
}

// changed reports whether found differs from the stored version.
func (v *Versions) changed(kind string, found metav1.Object) bool {
	version, _, known := strings.Cut(v.observed[entryOf(kind, found.GetName())], " ")
	return known && version != versionOf(found)
}

// load reads the ConfigMap once. If that is forbidden, nothing was stored.
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

// save writes the ConfigMap if the versions changed.
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
