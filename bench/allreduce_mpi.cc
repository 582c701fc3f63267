// MPI_Allreduce in place.  Built once for each MPI that is installed.
#include <mpi.h>

#include "allreduce.h"

namespace {

class MpiGroup final : public corro::bench::Group {
 public:
  MpiGroup(int* argc, char*** argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiGroup() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void allreduce(float* data, std::size_t count) override {
    const int elements = static_cast<int>(count);
    MPI_Allreduce(MPI_IN_PLACE, data, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  double max(double value) override {
    double result = 0;
    MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return result;
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const corro::bench::Words words(argc, argv);
  corro::bench::Measurement measurement(words);
  MpiGroup group(&argc, &argv);
  measurement.run(group);
}
