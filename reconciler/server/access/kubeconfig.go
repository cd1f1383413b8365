package access

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A Client describes how a client accesses the daemon. The kubeconfig refers to the files, so
// that they can be replaced and it contains no secret.
type Client struct {
	Server            string
	CAFile, TokenFile string
	CertFile, KeyFile string
}

// Kubeconfig returns a kubeconfig for kubectl. name is the name of the context.
func (c Client) Kubeconfig(name string) ([]byte, error) {
	for _, path := range []*string{&c.CAFile, &c.TokenFile, &c.CertFile, &c.KeyFile} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(absolute); err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		*path = absolute
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Server, CertificateAuthority: c.CAFile}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: c.TokenFile, ClientCertificate: c.CertFile, ClientKey: c.KeyFile}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
