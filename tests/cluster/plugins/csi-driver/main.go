// Program csi-driver is the driver of Kubernetes' own tests, which has no other program, and the registration with the
// kubelet that node-driver-registrar does for drivers.
//
//	csi-driver NAME MAXIMUM-OF-VOLUMES
package main

import (
	"context"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
)

const kubelet = "/var/lib/kubelet"

type registrar struct {
	registration.UnimplementedRegistrationServer
	name, endpoint string
}

func main() {
	name := os.Args[1]
	limit, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	endpoint := filepath.Join(kubelet, "plugins", name, "csi.sock")
	driver := service.New(service.Config{DriverName: name, AttachLimit: limit})
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, driver)
	csi.RegisterNodeServer(server, driver)
	go serve(server, endpoint)

	// The kubelet finds this socket by itself, also after a restart. When the socket is gone, it forgets the driver.
	socket := filepath.Join(kubelet, "plugins_registry", name+"-reg.sock")
	server = grpc.NewServer()
	registration.RegisterRegistrationServer(server, &registrar{name: name, endpoint: endpoint})
	go serve(server, socket)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
	os.Remove(socket)
}

func serve(server *grpc.Server, socket string) {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listens on ", socket)
	log.Fatal(server.Serve(listener))
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *registrar) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %t %s", status.PluginRegistered, status.Error)
	return &registration.RegistrationStatusResponse{}, nil
}
