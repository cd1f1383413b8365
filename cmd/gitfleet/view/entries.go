package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// historyEntries returns the entries of a query, the oldest first.
func historyEntries(ctx context.Context, c *client.Client, query url.Values) ([]history.Entry, error) {
	entries, err := openHistory(ctx, c, query)
	if err != nil {
		return nil, err
	}
	defer entries.Close()
	var all []history.Entry
	for d := json.NewDecoder(entries); ; {
		var e history.Entry
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the daemon's answer: %w", err)
		}
		all = append(all, e)
	}
}

// openHistory requests the entries of a query.
func openHistory(ctx context.Context, c *client.Client, query url.Values) (io.ReadCloser, error) {
	resp, err := c.Do(ctx, http.MethodGet, "/history", query, nil)
	if answer, ok := errors.AsType[*client.ResponseError](err); ok && answer.Code == http.StatusNotFound {
		return nil, errors.New("this daemon keeps no history")
	}
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// personOf returns the name of an author without the address.
func personOf(author string) string {
	name, _, _ := strings.Cut(author, " <")
	return name
}
