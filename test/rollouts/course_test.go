package rollouts

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
)

func TestACourseIsFollowed(t *testing.T) {
	stamped := func(name string) sight { return sight{name: name, stamp: "new"} }
	done := func(name string) sight { return sight{name: name, stamp: "new", done: true} }
	for what, one := range map[string]struct {
		sights []sight
		began  int
		most   int
		left   int
		again  []string
	}{
		"one after the other":                  {sights: []sight{stamped("a"), done("a"), stamped("b"), done("b")}, began: 2, most: 1},
		"two at once":                          {sights: []sight{stamped("a"), stamped("b"), done("a"), done("b")}, began: 2, most: 2},
		"one that does not end is left":        {sights: []sight{stamped("a"), stamped("b"), done("b")}, began: 2, most: 2, left: 1},
		"a sight from before is not a restart": {sights: []sight{{name: "a", stamp: "old"}, {name: "a", stamp: "old", done: true}}},
		"a paused one replaces no pod":         {sights: []sight{{name: "a", stamp: "new", still: true}, stamped("b")}, began: 2, most: 1, left: 1},
		"a second restart is told":             {sights: []sight{stamped("a"), done("a"), {name: "a", stamp: "newer", done: true}}, began: 1, most: 1, again: []string{"a"}},
	} {
		t.Run(what, func(t *testing.T) {
			got := follow(map[string]string{"a": "old", "b": "old"}, one.sights)
			require.Len(t, got.began, one.began)
			require.Equal(t, one.most, got.most)
			require.Len(t, got.left, one.left)
			require.Equal(t, one.again, got.again)
		})
	}
}

func TestALargerOneThatBeganMuchSoonerHasOvertaken(t *testing.T) {
	began := func(replicas ...int32) course {
		var c course
		for i, n := range replicas {
			c.began = append(c.began, sight{revision: int64(i), name: string(rune('a' + i)), replicas: n})
		}
		return c
	}
	for what, one := range map[string]struct {
		course          course
		after           int64
		slack           int
		larger, smaller string
	}{
		"smallest first":                {course: began(1, 1, 2, 2, 3), after: -1, slack: 1},
		"a larger one first":            {course: began(1, 3, 1), after: -1, slack: 1, larger: "b", smaller: "c"},
		"those that began as they came": {course: began(3, 1), after: -1, slack: 1},
		"those at once do not count":    {course: began(1, 1, 3, 1), after: -1, slack: 2},
		"beyond the slack they do":      {course: began(1, 1, 3, 2, 1), after: -1, slack: 2, larger: "c", smaller: "e"},
		"one that is paused does not":   {course: course{began: slices.Concat([]sight{{name: "p", still: true}}, began(3, 1, 2).began)}, after: -1, slack: 1},
		"those before do not count":     {course: began(1, 3, 1, 2), after: 1, slack: 1},
		"nothing began":                 {course: began(), after: -1, slack: 1},
	} {
		t.Run(what, func(t *testing.T) {
			larger, smaller := one.course.overtaken(one.after, one.slack)
			require.Equal(t, [2]string{one.larger, one.smaller}, [2]string{larger, smaller})
		})
	}
}

func TestADeploymentIsDoneOnceNoOldPodIsLeft(t *testing.T) {
	two := int32(2)
	for what, one := range map[string]struct {
		status appsv1.DeploymentStatus
		done   bool
	}{
		"every pod is new and available": {appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, true},
		"its controller is behind":       {appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, false},
		"an old pod is left":             {appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 3}, false},
		"a new pod is not available":     {appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1}, false},
	} {
		t.Run(what, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: &two}, Status: one.status}
			got, ok := sightOf(cluster.Edition{Object: d})
			require.True(t, ok)
			require.Equal(t, one.done, got.done)
		})
	}
	_, ok := sightOf(cluster.Edition{})
	require.False(t, ok, "it is gone")
}
