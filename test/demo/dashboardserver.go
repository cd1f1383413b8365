package main

import (
	"context"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/test/picture"
)

// dashboardsAddress is where the dashboards are served, unless the port is in use.
const dashboardsAddress = "127.0.0.1:9091"

// dashboardPeriod is how far back the dashboards go.
const dashboardPeriod = 10 * time.Minute

// A dashboardServer serves web pages with the dashboards of deploy/grafana, for use without Grafana.
type dashboardServer struct {
	files  string // the directory of the dashboard files
	source *picture.Source
	began  time.Time // when the demo was started; Prometheus has no earlier data
}

// A dashboardPage shows one dashboard, for one value of its variable at a time.
type dashboardPage struct{ name, title, variable, metric string }

var dashboardPages = []dashboardPage{
	{name: "rollout", title: "Rollout", variable: "placement", metric: "gitfleet_placement_clusters"},
	{name: "fleet", title: "Fleet"},
	{name: "cluster", title: "Cluster", variable: "cluster", metric: "gitfleet_member_up"},
	{name: "daemon", title: "Source and daemon"},
}

// serveDashboards starts a server of the dashboards. It returns the server, which the caller closes, and its URL.
func (d *demo) serveDashboards() (*http.Server, string, error) {
	source, err := picture.NewSource(d.prometheus.url)
	if err != nil {
		return nil, "", err
	}
	address, err := free(dashboardsAddress)
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: dashboardServer{filepath.Join(d.root, "deploy", "grafana"), source, time.Now()}.handler(), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener) //nolint:errcheck // it ends when it is closed
	return server, "http://" + address + "/" + dashboardPages[0].name, nil
}

func (b dashboardServer) handler() http.Handler {
	mux := http.NewServeMux()
	for _, page := range dashboardPages {
		mux.HandleFunc("GET /"+page.name, func(w http.ResponseWriter, r *http.Request) { b.serve(w, r, page) })
	}
	mux.Handle("GET /{$}", http.RedirectHandler("/"+dashboardPages[0].name, http.StatusFound))
	return mux
}

func (b dashboardServer) serve(w http.ResponseWriter, r *http.Request, page dashboardPage) {
	view, err := b.view(r.Context(), page, r.FormValue(page.variable))
	if err != nil {
		http.Error(w, fmt.Sprintf("The dashboard cannot be drawn: %v", err), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := dashboardTemplate.Execute(w, view); err != nil {
		return // the browser has gone
	}
}

// A dashboardView is what the template shows.
type dashboardView struct {
	Title         string
	Pages, Values []dashboardLink
	Picture       template.HTML
}

type dashboardLink struct {
	URL, Text string
	Current   bool
}

func (b dashboardServer) view(ctx context.Context, page dashboardPage, value string) (*dashboardView, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	view := &dashboardView{Title: page.title}
	for _, other := range dashboardPages {
		view.Pages = append(view.Pages, dashboardLink{"/" + other.name, other.title, other == page})
	}
	fleets, err := b.source.Values(ctx, "gitfleet_build_info", "fleet", b.began)
	if err != nil {
		return nil, err
	}
	variables := map[string]string{"fleet": strings.Join(fleets, "")} // there is one
	to := time.Now()
	if page.variable != "" {
		values, err := b.source.Values(ctx, page.metric, page.variable, b.began)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(values, value) && len(values) > 0 {
			value = values[0]
		}
		variables[page.variable] = value
		for _, v := range values {
			view.Values = append(view.Values, dashboardLink{"?" + page.variable + "=" + template.URLQueryEscaper(v), v, v == value})
		}
	}
	file, err := os.ReadFile(filepath.Join(b.files, page.name+".json"))
	if err != nil {
		return nil, err
	}
	from := to.Add(-min(dashboardPeriod, max(time.Minute, to.Sub(b.began))))
	svg, err := picture.Draw(file, from, to, b.source.Query(ctx, from, to, variables))
	view.Picture = template.HTML(strings.TrimSpace(svg)) //nolint:gosec // Draw escapes labels
	return view, err
}

var dashboardTemplate = template.Must(template.New("dashboard").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="3">
<title>{{.Title}} - gitfleet demo</title>
<style>
body { font-family: Helvetica, Arial, sans-serif; background: #f4f5f5; color: #24292e; margin: 12px }
nav { margin-bottom: 8px } a { color: #1f60c4; margin-right: 14px } a.current { color: #24292e; font-weight: bold; text-decoration: none }
</style>
<nav>{{range .Pages}}<a href="{{.URL}}"{{if .Current}} class="current"{{end}}>{{.Text}}</a>{{end}}</nav>
{{with .Values}}<nav>{{range .}}<a href="{{.URL}}"{{if .Current}} class="current"{{end}}>{{.Text}}</a>{{end}}</nav>{{end}}
{{.Picture}}
</html>
`))
