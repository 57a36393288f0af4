// Package v20170312 stands in for the SDK of Tencent cloud: every call fails. flanneld calls it only for its backend for that
// cloud.
package v20170312

import "errors"

var errStub = errors.New("built without Tencent cloud")

type Filter struct {
	Name   *string
	Values []*string
}
type Route struct {
	DestinationCidrBlock, GatewayType, GatewayId, RouteType *string
	Enabled                                                 *bool
	RouteId                                                 *uint64
}
type RouteTable struct {
	RouteTableId *string
	RouteSet     []*Route
}
type DescribeRouteTablesRequest struct{ Filters []*Filter }
type DeleteRoutesRequest struct {
	RouteTableId *string
	Routes       []*Route
}
type CreateRoutesRequest = DeleteRoutesRequest
type DescribeRouteTablesResponse struct {
	Response struct{ RouteTableSet []*RouteTable }
}
type Client struct{}

func NewClientWithSecretId(_, _, _ string) (*Client, error) { return &Client{}, errStub }
func NewDescribeRouteTablesRequest() *DescribeRouteTablesRequest {
	return &DescribeRouteTablesRequest{}
}
func NewDeleteRoutesRequest() *DeleteRoutesRequest                  { return &DeleteRoutesRequest{} }
func NewCreateRoutesRequest() *CreateRoutesRequest                  { return &CreateRoutesRequest{} }
func (*Client) DeleteRoutes(*DeleteRoutesRequest) (struct{}, error) { return struct{}{}, errStub }
func (*Client) CreateRoutes(*CreateRoutesRequest) (struct{}, error) { return struct{}{}, errStub }
func (*Client) DescribeRouteTables(*DescribeRouteTablesRequest) (*DescribeRouteTablesResponse, error) {
	return nil, errStub
}
