package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// A member is a minimal client of a cluster. A Kubernetes library would take longer to build
// than the rest of the demo.
type member struct {
	url    string
	client *http.Client
}

// openMember reads the kubeconfig of a cluster.
func openMember(name, dir string) (*member, error) {
	text, err := os.ReadFile(filepath.Join(dir, name+".kubeconfig"))
	if err != nil {
		return nil, err
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server    string `json:"server"`
				Authority []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		return nil, fmt.Errorf("kubeconfig of %s: not one cluster and one user", name)
	}
	certificate, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Clusters[0].Cluster.Authority)
	return &member{
		url: config.Clusters[0].Cluster.Server,
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
			ForceAttemptHTTP2: true,
		}},
	}, nil
}

// ask sends one request, and returns the response body, which the caller closes.
func (m *member) ask(ctx context.Context, method, path, contentType, body string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, m.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := m.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		return nil, fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return response.Body, nil
}

// playKubelet reports every pod as running if its images can be pulled. The clusters have
// controllers but no nodes; without it no Deployment would become available.
func (m *member) playKubelet(ctx context.Context) {
	for ctx.Err() == nil {
		m.watchPods(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// A pod has the fields of a Pod that playKubelet needs.
type pod struct {
	Metadata struct{ Name, Namespace string } `json:"metadata"`
	Spec     struct {
		Containers []struct{ Name, Image string } `json:"containers"`
	} `json:"spec"`
}

// badTag is a tag that no registry has: the tour rolls out an image with it.
const badTag = "no-such-tag"

// status returns the status that a kubelet would report: running, or failing to pull an image.
func (p pod) status() string {
	for _, c := range p.Spec.Containers {
		if strings.HasSuffix(c.Image, ":"+badTag) {
			return fmt.Sprintf(waiting, c.Name, c.Image, "Back-off pulling image "+c.Image+": not found")
		}
	}
	return running
}

const waiting = `{"status":{"phase":"Pending","containerStatuses":[{"name":%q,"image":%q,"imageID":"","ready":false,"restartCount":0,"state":{"waiting":{"reason":"ImagePullBackOff","message":%q}}}]}}`

func (m *member) watchPods(ctx context.Context) {
	body, err := m.ask(ctx, http.MethodGet, "/api/v1/pods?watch=true&fieldSelector=status.phase%3DPending", "", "")
	if err != nil {
		return
	}
	defer body.Close()
	for events := json.NewDecoder(body); ; {
		var event struct {
			Type   string `json:"type"`
			Object pod    `json:"object"`
		}
		if events.Decode(&event) != nil {
			return
		}
		if event.Type == "ADDED" {
			go m.run(ctx, event.Object)
		}
	}
}

// startUp is how long a pod takes to start, so that progress can be watched.
const startUp = 3 * time.Second

// running is the status of a pod that a kubelet has started.
const running = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"}]}}`

// run reports a pod as running after its start-up time. A pod that was deleted meanwhile needs
// no status.
func (m *member) run(ctx context.Context, p pod) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(startUp):
	}
	path := "/api/v1/namespaces/" + p.Metadata.Namespace + "/pods/" + p.Metadata.Name + "/status"
	if body, err := m.ask(ctx, http.MethodPatch, path, "application/merge-patch+json", p.status()); err == nil {
		body.Close()
	}
}
