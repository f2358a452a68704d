package cluster

import (
	"context"
	"encoding/json"
	"fmt"
)

// damaged is stored in place of an object by Damage. History leaves it out.
var damaged = []byte("k8s\x00damaged")

// Damage stores an object that no API server can read, so that every list and watch of its
// resource fails, until Undamage.
func (c *Cluster) Damage(ctx context.Context, resource, namespace, name string) error {
	return c.changeKey(ctx, "kv/put", map[string][]byte{"key": keyOf(resource, namespace, name), "value": damaged})
}

// Undamage takes away what Damage stored.
func (c *Cluster) Undamage(ctx context.Context, resource, namespace, name string) error {
	return c.changeKey(ctx, "kv/deleterange", map[string][]byte{"key": keyOf(resource, namespace, name)})
}

func keyOf(resource, namespace, name string) []byte {
	return fmt.Appendf(nil, "/registry/%s/%s/%s", resource, namespace, name)
}

func (c *Cluster) changeKey(ctx context.Context, what string, question map[string][]byte) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	body, err := c.askEtcd(ctx, what, string(text))
	if err != nil {
		return err
	}
	return body.Close()
}
