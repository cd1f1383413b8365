package replica

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	// ledgerLabel is on every Secret of a ledger, with the name of the Lease as its value.
	ledgerLabel = "gitfleet.dev/ledger"
	ledgerType  = "gitfleet.dev/ledger"
	dataKey     = "data"
)

// requestTimeout limits each request for the ledger, since the loop waits for it.
const requestTimeout = 5 * time.Second

// Secrets are the objects of a ledger in a namespace.
type Secrets struct {
	client core.SecretInterface
	names  metadata.ResourceInterface // reads metadata only
	name   string
}

// Secrets returns the Secrets beside the lease. Writes are subject to the fence.
func (r *Replica) Secrets() (*Secrets, error) {
	config := rest.CopyConfig(r.rest)
	config.Wrap(r.fence.Wrap)
	return newSecrets(config, r.cfg.Namespace, r.cfg.Name)
}

// Unfenced returns the Secrets of the ledger for a command that writes them without being the
// leader.
func Unfenced(cfg Config) (*Secrets, error) {
	config, err := clusterConfig(cfg.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return newSecrets(config, cfg.Namespace, cfg.Name)
}

func newSecrets(config *rest.Config, namespace, name string) (*Secrets, error) {
	config.Timeout = requestTimeout
	client, err := core.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("use the credentials of the management cluster: %w", err)
	}
	metadatas, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("use the credentials of the management cluster: %w", err)
	}
	return &Secrets{client.Secrets(namespace), metadatas.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace), name}, nil
}

// prefix returns the prefix of the names of the ledger's Secrets.
func (s *Secrets) prefix() string { return s.name + "-ledger-" }

// SecretName returns the name of the Secret of an object.
func (s *Secrets) SecretName(object string) string { return s.prefix() + object }

// Get implements ledger.Objects.
func (s *Secrets) Get(name string) ([]byte, string, error) {
	found, err := s.client.Get(context.Background(), s.SecretName(name), metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	return found.Data[dataKey], found.ResourceVersion, nil
}

// Create implements ledger.Objects.
func (s *Secrets) Create(name string, value []byte) (string, error) {
	made, err := s.client.Create(context.Background(), s.secret(name, value), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return made.ResourceVersion, nil
}

// Update implements ledger.Objects.
func (s *Secrets) Update(name string, value []byte, version string) (string, error) {
	secret := s.secret(name, value)
	secret.ResourceVersion = version
	made, err := s.client.Update(context.Background(), secret, metav1.UpdateOptions{})
	if err != nil {
		return "", err
	}
	return made.ResourceVersion, nil
}

func (s *Secrets) secret(name string, value []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: s.SecretName(name), Labels: map[string]string{ledgerLabel: s.name}},
		Type:       ledgerType, Data: map[string][]byte{dataKey: value},
	}
}

// Delete implements ledger.Objects.
func (s *Secrets) Delete(name string) error {
	return s.client.Delete(context.Background(), s.SecretName(name), metav1.DeleteOptions{})
}

// List implements ledger.Objects.
func (s *Secrets) List() ([]string, error) {
	list, err := s.names.List(context.Background(), metav1.ListOptions{LabelSelector: ledgerLabel + "=" + s.name})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		if name, ours := strings.CutPrefix(list.Items[i].Name, s.prefix()); ours {
			names = append(names, name)
		}
	}
	return names, nil
}
