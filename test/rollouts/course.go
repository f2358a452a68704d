package rollouts

import (
	_ "embed"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// sight is what one edition of a Deployment says of its rollout.
type sight struct {
	revision int64
	name     string
	replicas int32
	// stamp is what it was restarted for.
	stamp string
	// still: it is paused, and replaces no pod. done: every pod is of the newest
	// template, and available.
	still, done bool
}

// sightOf reads an edition; false for one that says that the Deployment is gone.
func sightOf(edition cluster.Edition) (sight, bool) {
	d, ok := edition.Object.(*appsv1.Deployment)
	if !ok {
		return sight{}, false
	}
	return sight{
		revision: edition.Revision, name: d.Namespace + "/" + d.Name, replicas: *d.Spec.Replicas,
		stamp: d.Spec.Template.Annotations[mark.RestartedFor], still: d.Spec.Paused, done: rolledOut(d),
	}, true
}

func rolledOut(d *appsv1.Deployment) bool { return lab.RolledOut(d) == nil }

// course is how the rollouts of one change went.
type course struct {
	// began holds the first sight of each restarted Deployment, in the order of
	// the API server's revisions.
	began []sight
	// most is how many rollouts were under way at once.
	most int
	// left are under way at the end.
	left map[string]bool
	// again were restarted more than once.
	again []string
	// took is from the edit until the last is complete.
	took time.Duration
}

// follow follows sights, which are in order of revision, from a state where
// each Deployment bears the stamp of before.
func follow(before map[string]string, sights []sight) course {
	c := course{left: map[string]bool{}}
	stamps := map[string]string{}
	for _, s := range sights {
		last, seen := stamps[s.name]
		switch {
		case !seen && s.stamp == before[s.name]:
			continue // nothing yet
		case !seen:
			c.began = append(c.began, s)
			c.left[s.name] = true
		case s.stamp != last:
			c.again = append(c.again, s.name)
			c.left[s.name] = true
		}
		stamps[s.name] = s.stamp
		if s.done || s.still {
			delete(c.left, s.name)
		}
		c.most = max(c.most, len(c.left))
	}
	return c
}

// overtaken returns a Deployment that began although a smaller one, which
// began at least slack later, could have begun in its place; empty when there
// is none. The first slack of them began as they came, and so did those up to
// revision. One that is paused takes nobody's place.
func (c course) overtaken(revision int64, slack int) (larger, smaller string) {
	var largest *sight
	late := slices.DeleteFunc(slices.Clone(c.began), func(s sight) bool { return s.still })
	late = late[min(slack, len(late)):]
	for len(late) > 0 && late[0].revision <= revision {
		late = late[1:]
	}
	for j := slack; j < len(late); j++ {
		if before := &late[j-slack]; largest == nil || before.replicas > largest.replicas {
			largest = before
		}
		if late[j].replicas < largest.replicas {
			return largest.name, late[j].name
		}
	}
	return "", ""
}
