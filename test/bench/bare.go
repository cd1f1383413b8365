package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// A bare client is the baseline: it applies the given objects, eight at a time, and does
// nothing else. Requests are encoded beforehand, and responses are discarded.
type bare struct {
	client *http.Client
	host   string
}

// bareConcurrency is the same as gitfleet's.
const bareConcurrency = 8

func newBare(config *rest.Config) (*bare, error) {
	client, err := rest.HTTPClientFor(rest.CopyConfig(config))
	if err != nil {
		return nil, err
	}
	return &bare{client: client, host: config.Host}, nil
}

// send makes one request and reads the response to the end.
func (b *bare) send(ctx context.Context, method, path, contentType string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, method, b.host+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := b.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return err
}

// apply applies one object.
func (b *bare) apply(ctx context.Context, o object) error {
	return b.send(ctx, http.MethodPatch, o.path+"?fieldManager=bare&force=true", "application/apply-patch+yaml", o.json)
}

// applyAll applies the first object, a Namespace, and then all others.
func (b *bare) applyAll(ctx context.Context, list []object) error {
	if err := b.apply(ctx, list[0]); err != nil {
		return err
	}
	return b.applyMany(ctx, list[1:])
}

// applyMany applies some objects in any order.
func (b *bare) applyMany(ctx context.Context, list []object) error {
	todo, errs := make(chan object), make(chan error, bareConcurrency)
	var workers sync.WaitGroup
	for range bareConcurrency {
		workers.Go(func() {
			var failed error
			for o := range todo {
				if failed == nil {
					failed = b.apply(ctx, o)
				}
			}
			errs <- failed
		})
	}
	for _, o := range list {
		todo <- o
	}
	close(todo)
	workers.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// patchTime returns how long an apply takes that changes a field of an existing object.
func (b *bare) patchTime(ctx context.Context, o object) (time.Duration, error) {
	began := time.Now()
	err := b.apply(ctx, o)
	return time.Since(began), err
}

// clear deletes the objects in a namespace of the kinds that are applied here, and the
// inventories, so that one sample does not slow down the next. The namespace stays: no
// controller would finish its deletion.
func (b *bare) clear(ctx context.Context, namespace string) error {
	return errors.Join(
		b.send(ctx, http.MethodDelete, "/api/v1/namespaces/"+namespace+"/configmaps", "", nil),
		b.send(ctx, http.MethodDelete, "/apis/apps/v1/namespaces/"+namespace+"/deployments", "", nil),
		b.send(ctx, http.MethodDelete, "/api/v1/namespaces/gitfleet-system/configmaps", "", nil),
	)
}
