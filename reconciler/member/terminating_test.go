package member_test

import (
	"strings"
	"testing"
	"testing/synctest"
)

// The status of an object that somebody has deleted, and that a finalizer keeps, says so; of a Namespace, it
// also has the conditions. Once the object is gone, it is created again.
func TestObjectThatSomebodyDeletesSaysWhyItStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		settings := c.of("", "v1", "configmaps")
		c.start(placed(t, "web", `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}, data: {a: b}}`))
		defer c.stop()
		c.patch(settings, "web", "kubectl", `{"metadata":{"finalizers":["example.com/wait"]}}`)
		c.settle()
		c.expectNoDrift()
		c.delete(settings, "web")
		c.settle()
		old := c.live(settings, "web")
		if got, want := c.reasons(), "the object is being deleted; it is created anew once it is gone (finalizers: example.com/wait)"; !strings.Contains(got, want) {
			t.Errorf("the status is %q, want %q", got, want)
		}
		c.patch(settings, "web", "kubectl", `{"metadata":{"finalizers":null}}`)
		c.settle()
		if now := c.live(settings, "web"); now == nil || now.GetUID() == old.GetUID() {
			t.Errorf("it was not created again: %v", now)
		}
		if got := c.reasons(); got != "" {
			t.Errorf("the status is still %q", got)
		}
	})
}

// reasons returns why objects are not applied.
func (c *controlled) reasons() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var messages []string
	for _, e := range c.seen.Exceptions {
		if !e.Applied.OK {
			messages = append(messages, e.Applied.Message())
		}
	}
	return strings.Join(messages, "\n")
}
