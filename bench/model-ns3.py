"""Bytes of one bulk transfer over 1 Gbit/s and 20 ms through ns-3, as bench/model asks: prints the
processor's seconds that the simulation took, and how many bytes arrived.

    python bench/model-ns3.py BYTES      with the ns3 wheel installed
"""

import sys
import time

from ns import ns

wanted = int(sys.argv[1])
for name, size in (("SegmentSize", 1448), ("SndBufSize", 1 << 24), ("RcvBufSize", 1 << 24)):
    ns.Config.SetDefault(f"ns3::TcpSocket::{name}", ns.UintegerValue(size))
nodes = ns.NodeContainer()
nodes.Create(2)
link = ns.PointToPointHelper()
link.SetDeviceAttribute("DataRate", ns.StringValue("1Gbps"))
link.SetChannelAttribute("Delay", ns.StringValue("10ms"))
# No loss, as on the model's path.
link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue("100000p"))
devices = link.Install(nodes)
ns.InternetStackHelper().Install(nodes)
addresses = ns.Ipv4AddressHelper()
addresses.SetBase(ns.Ipv4Address("10.1.1.0"), ns.Ipv4Mask("255.255.255.0"))
interfaces = addresses.Assign(devices)
target = ns.InetSocketAddress(interfaces.GetAddress(1), 9).ConvertTo()
bulk = ns.BulkSendHelper("ns3::TcpSocketFactory", target)
bulk.SetAttribute("MaxBytes", ns.UintegerValue(wanted))
bulk.Install(nodes.Get(0)).Start(ns.Seconds(0))
anywhere = ns.InetSocketAddress(ns.Ipv4Address.GetAny(), 9).ConvertTo()
sinks = ns.PacketSinkHelper("ns3::TcpSocketFactory", anywhere).Install(nodes.Get(1))
sinks.Start(ns.Seconds(0))
ns.Simulator.Stop(ns.Seconds(600))
began = time.process_time()
ns.Simulator.Run()
took = time.process_time() - began
received = sinks.Get(0).GetObject[ns.PacketSink]().__deref__().GetTotalRx()
print(f"{took} {received}")
