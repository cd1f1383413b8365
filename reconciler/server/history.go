package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// A Past reads history entries; a [history.Record] does.
type Past interface {
	Read(ctx context.Context, f history.Filter, each func(history.Entry) error) error
}

// HistoryHandler responds with entries as JSON lines, oldest first: ?placement=crp/NAME,
// ?cluster=NAME, ?object=KIND/NAMESPACE/NAME (or KIND/NAME and ?namespace=) or a part of a
// name, ?kind=object, ?since=TIME and ?until=TIME (RFC 3339), ?newest=N.
func HistoryHandler(past Past) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		f, err := filter(req.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		respondLines(w, "the history", func(w io.Writer) error {
			out := bufio.NewWriterSize(w, 64<<10)
			encoder := json.NewEncoder(out)
			if err := past.Read(req.Context(), f, func(e history.Entry) error { return encoder.Encode(e) }); err != nil {
				return err
			}
			return out.Flush()
		})
	})
}

// filter parses the query.
func filter(query url.Values) (history.Filter, error) {
	f := history.Filter{Kind: history.Kind(query.Get("kind")), Placement: query.Get("placement"), Cluster: query.Get("cluster")}
	object, err := api.ParseObject(query.Get("object"), query.Get("namespace"))
	if err == nil {
		f.Object = object.Name
		f.Means = func(text string) bool {
			id, err := api.ParseID(text)
			return err == nil && object.Means(id)
		}
	} else {
		f.Object = query.Get("object")
	}
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		if *at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return f, fmt.Errorf("%s: %q is not a time such as 2026-01-31T12:00:00Z", name, text)
		}
	}
	if text := query.Get("newest"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return f, fmt.Errorf("newest: %q is not a positive number", text)
		}
		f.Newest = n
	}
	return f, nil
}
