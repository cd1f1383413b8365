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
		return client.Resource(r).Namespace(namespace).List(ctx, opts)
	})
}

// EachItem reads a list of any length in pages of 500, and calls read with each item. It returns the
// resource version of the list.
func EachItem[T any](ctx context.Context, list func() *rest.Request, read func(T)) (resourceVersion string, err error) {
	for at := (Listing{ListOptions: metav1.ListOptions{Limit: 500}}); ; {
		raw, err := fittingPage(&at.ListOptions, func(opts metav1.ListOptions) ([]byte, error) {
			request := list().Param("limit", strconv.FormatInt(opts.Limit, 10))
			if opts.Continue != "" {
				request.Param("continue", opts.Continue)
			}
			return Answer(request.Do(ctx))
		})
		if err != nil {
			return "", err
		}
		var page struct {
			Metadata metav1.ListMeta
			Items    []T
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return "", err
		}
		for _, item := range page.Items {
			read(item)
		}
		if more, err := at.Next(&page.Metadata, len(page.Items)); !more {
			return page.Metadata.ResourceVersion, err
		}
	}
}

// fittingPage requests a page, and again with fewer objects while the response is too large. It
// leaves the lower limit in opts for the next pages of the list.
func fittingPage[L any](opts *metav1.ListOptions, list func(metav1.ListOptions) (L, error)) (L, error) {
	for {
		page, err := list(*opts)
		var tooLarge *tooLargeError
		if opts.Limit <= 1 || !errors.As(err, &tooLarge) {
			return page, err
		}
		opts.Limit = max(1, opts.Limit/8)
	}
}
