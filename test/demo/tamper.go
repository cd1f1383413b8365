package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// A victim is an object that the demo deletes, to show how it is restored.
type victim struct{ Cluster, Namespace, Name string }

func (v victim) String() string {
	return fmt.Sprintf("ConfigMap %s/%s on %s", v.Namespace, v.Name, v.Cluster)
}

func (v victim) path() string { return "/api/v1/namespaces/" + v.Namespace + "/configmaps/" + v.Name }

// victims are ConfigMaps of examples/quickstart, deleted in turn: an object that is deleted a
// third time within ten minutes is contested, and restored only after half a minute.
var victims = []victim{
	{"member-2", "platform", "fleet-info"},
	{"member-1", "storefront", "storefront"},
	{"member-3", "platform", "fleet-info"},
	{"member-2", "storefront", "storefront"},
	{"member-1", "platform", "fleet-info"},
}

// repairTimeout is longer than that half minute.
const repairTimeout = 45 * time.Second

// enters receives a value each time the user presses Enter; nil without a terminal, and with a forge,
// since changes are not repaired then.
func (d *demo) enters(ctx context.Context) <-chan struct{} {
	if d.hosted || !isTerminal(os.Stdin) {
		return nil
	}
	pressed := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			select {
			case pressed <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return pressed
}

// tamper deletes the next victim, and shows how long it took until it was restored.
func (d *demo) tamper(ctx context.Context) {
	v := victims[d.tampered%len(victims)]
	d.tampered++
	took, err := v.strike(ctx, d.kubeconfigs())
	switch {
	case err != nil && ctx.Err() == nil:
		d.say("  " + d.paint(red, fmt.Sprintf("%s did not come back: %v", v, err)))
	case err == nil:
		d.say(fmt.Sprintf("  %s was deleted, and was back after %s.", v, took.Round(time.Millisecond)))
	}
}

// strike deletes the object and waits until it exists again.
func (v victim) strike(ctx context.Context, kubeconfigs string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	m, err := openMember(v.Cluster, kubeconfigs)
	if err != nil {
		return 0, err
	}
	defer m.client.CloseIdleConnections()
	before, err := m.uid(ctx, v.path())
	if err != nil {
		return 0, err
	}
	body, err := m.ask(ctx, http.MethodDelete, v.path(), "", "")
	if err != nil {
		return 0, err
	}
	body.Close()
	for began := time.Now(); ; {
		now, err := m.uid(ctx, v.path())
		if err == nil && now != before {
			return time.Since(began), nil
		}
		if ctx.Err() != nil {
			return 0, errors.New("gitfleet may consider it contested, see its log")
		}
		time.Sleep(time.Millisecond)
	}
}

// uid returns the UID of an object.
func (m *member) uid(ctx context.Context, path string) (string, error) {
	body, err := m.ask(ctx, http.MethodGet, path, "", "")
	if err != nil {
		return "", err
	}
	defer body.Close()
	var o struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	return o.Metadata.UID, json.NewDecoder(body).Decode(&o)
}
