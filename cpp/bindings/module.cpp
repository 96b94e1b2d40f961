// SPDX-License-Identifier: BSD-3-Clause
// The Python extension module. Only the files in this folder use Python types.
#include "bindings/doors.hpp"
#include "bindings/sampling.hpp"
#include "bindings/text.hpp"

using namespace sipower;

NB_MODULE(_kernels, m) {
    m.doc() = "Compiled kernels of sipower; use them through sipower.kernels.";
    // Objects that a daemon thread still holds at exit would be reported as leaks; tests count references instead.
    nb::set_leak_warnings(false);
    m.def("level", &level, "The instruction-set level in use.");
    bind_csr(m);
    bind_dense(m);
    bind_epoch_plan(m);
    bind_sampling(m);
    bind_text(m);
    bind_basis<float>(m, "BasisFloat32");
    bind_basis<double>(m, "BasisFloat64");
    m.def("certify", &certify<double>, nb::arg("basis"), nb::arg("g").noconvert(), nb::arg("h").noconvert(), nb::arg("mass").noconvert(),
          nb::arg("out").noconvert());
    m.def("model_steps", &model_steps, nb::arg("Q").noconvert(), nb::arg("r").noconvert(), nb::arg("room").noconvert(), nb::arg("begin"),
          nb::arg("end"), nb::arg("sweeps"), nb::arg("p").noconvert(), nb::arg("kappa").noconvert());
    bind_doors<float, CsrData>(m);
    bind_doors<float, DenseData>(m);
    bind_doors<double, CsrData>(m);
    bind_doors<double, DenseData>(m);
}
