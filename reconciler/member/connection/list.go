package connection

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// WholePage is like Page, but lists whole objects.
func (c *Conn) WholePage(ctx context.Context, res Resource, namespace string, opts *metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	client, err := c.Dynamic()
	if err != nil {
		return nil, err
	}
	return fittingPage(opts, func(opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		ctx, release := holdingSlot(ctx)
		defer release()
		return client.Resource(res.GroupVersionResource).Namespace(namespace).List(ctx, opts)
	})
}

// Page lists metadata, continuing at the position in opts. If it had to lower the limit, the
// lower one is left in opts.
func (c *Conn) Page(ctx context.Context, r schema.GroupVersionResource, namespace string, opts *metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	client, err := c.Metadata()
	if err != nil {
		return nil, err
	}
	return fittingPage(opts, func(opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		ctx, release := holdingSlot(ctx)
		defer release()
		return client.Resource(r).Namespace(namespace).List(ctx, opts)
	})
}

// EachItem reads a list of any length in pages of 500, and calls read with each item, until that returns
// an error. It returns the resource version of the list.
func EachItem[T any](ctx context.Context, list func() *rest.Request, read func(T) error) (resourceVersion string, err error) {
	for at := (Listing{ListOptions: metav1.ListOptions{Limit: 500}}); ; {
		page, err := readPage[T](ctx, &at, list)
		if err != nil {
			return "", err
		}
		for _, item := range page.Items {
			if err := read(item); err != nil {
				return "", err
			}
		}
		if more, err := at.Next(&page.Metadata, len(page.Items)); !more {
			return page.Metadata.ResourceVersion, err
		}
	}
}

type page[T any] struct {
	Metadata metav1.ListMeta
	Items    []T
}

// readPage reads one page of a list.
func readPage[T any](ctx context.Context, at *Listing, list func() *rest.Request) (p page[T], err error) {
	ctx, release := holdingSlot(ctx)
	defer release()
	raw, err := fittingPage(&at.ListOptions, func(opts metav1.ListOptions) ([]byte, error) {
		request := list().Param("limit", strconv.FormatInt(opts.Limit, 10))
		if opts.Continue != "" {
			request.Param("continue", opts.Continue)
		}
		return Answer(request.Do(ctx))
	})
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(raw, &p)
}

// fittingPage requests a page, and again with fewer objects while the response is too large. It
// leaves the lower limit in opts for the next pages of the list.
func fittingPage[L any](opts *metav1.ListOptions, list func(metav1.ListOptions) (L, error)) (L, error) {
	for {
		page, err := list(*opts)
		if opts.Limit <= 1 || !isTooLarge(err) {
			return page, err
		}
		opts.Limit = max(1, opts.Limit/8)
	}
}

// isTooLarge reports whether one answer was too large, also for the speed at which it arrived.
func isTooLarge(err error) bool {
	e, ok := errors.AsType[*exceededError](err)
	return ok && e.answer || errors.Is(err, errRevoked)
}
